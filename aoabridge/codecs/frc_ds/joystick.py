"""Joystick tags of the robot link: both directions have a form for a slot without joystick."""

from collections.abc import Mapping
from typing import Annotated, Any

from aoabridge.codecs.frc_ds.parts import Counted
from aoabridge.codecs.frc_ds.payload import PayloadCodec, compile_codec
from aoabridge.codecs.frc_ds.tags import Tag
from aoabridge.codecs.frc_ds.values import hex_octets
from aoabridge.codecs.packets import Packet
from aoabridge.codecs.wire import U16, U32, expect_int
from aoabridge.errors import DecodeError, EncodeError

__all__ = ["Joystick", "JoystickCodec", "JoystickOutput", "JoystickOutputCodec"]


class _Controls(Packet, frozen=True):
    """Payload of a joystick that is there, but for the buttons between axes and POVs."""

    axes: Annotated[tuple[int, ...], Counted("B", "b")]


class _Povs(Packet, frozen=True):
    povs: Annotated[tuple[int, ...], Counted("B", "h")]


_AXES, _POVS = PayloadCodec(_Controls), PayloadCodec(_Povs)


class Joystick(Tag, frozen=True):
    """Axes -128..127, buttons, POVs in degrees (-1 = none) of one slot; ``absent``: nothing is plugged in there.

    ``buttons`` is one big-endian bit field: button 1 is bit 0 of the last octet.
    """

    ID, NAME = 0x0C, "joystick"
    absent: bool
    axes: tuple[int, ...] = ()
    button_count: int = 0
    buttons: bytes = b""
    povs: tuple[int, ...] = ()

    @property
    def buttons_hex(self) -> str:
        """The octets of the buttons, unused bits included."""
        return self.buttons.hex()

    @property
    def pressed(self) -> tuple[int, ...]:
        """Numbers of the pressed buttons, from 1, ascending."""
        bits = self.button_bits
        return tuple(number for number in range(1, self.button_count + 1) if bits >> number - 1 & 1)

    @property
    def button_bits(self) -> int:
        """The buttons as a number: bit 0 = button 1; bits beyond ``button_count`` may be set."""
        return int.from_bytes(self.buttons)


class JoystickCodec:
    """Codec of a Joystick; the empty payload is an absent one."""

    def decode(self, data: bytes) -> Joystick:
        """The joystick; DecodeError unless ``data`` is exactly one."""
        if not data:
            return Joystick(absent=True)
        axes_end = 1 + data[0]
        if axes_end >= len(data):
            raise DecodeError("the axes run past the end", len(data))
        count = data[axes_end]
        buttons_end = axes_end + 1 + (count + 7) // 8
        if buttons_end >= len(data):
            raise DecodeError("the buttons run past the end", len(data))
        axes = _AXES.read(data, 0)[0].axes
        povs = _POVS.decode(data[buttons_end:]).povs
        return Joystick(False, axes, count, data[axes_end + 1 : buttons_end], povs)

    def read(self, data: bytes, at: int) -> tuple[Joystick, int]:
        """A joystick fills its tag."""
        return self.decode(data[at:]), len(data)

    def write(self, packet: Joystick, path: str = "") -> bytes:
        """The octets; EncodeError for what does not fit."""
        if packet.absent:
            if packet != Joystick(absent=True):
                raise EncodeError(f"{path}absent: an absent joystick has no axes, buttons or POVs", f"{path}absent")
            return b""
        count = packet.button_count
        if not 0 <= count <= 0xFF:
            raise EncodeError(f"{path}button_count: {count} is not in 0..255", f"{path}button_count")
        if len(packet.buttons) != (count + 7) // 8:
            name = f"{path}buttons_hex"
            raise EncodeError(f"{name}: {len(packet.buttons)} bytes for {count} buttons", name)
        axes, povs = _AXES.write(_Controls(packet.axes), path), _POVS.write(_Povs(packet.povs), path)
        return axes + bytes([count]) + packet.buttons + povs

    def to_fields(self, packet: Joystick) -> dict[str, Any]:
        """JSON form."""
        return {
            "absent": packet.absent,
            "axes": list(packet.axes),
            "button_count": packet.button_count,
            "buttons_hex": packet.buttons_hex,
            "pressed": list(packet.pressed),
            "povs": list(packet.povs),
        }

    def from_fields(self, fields: Any, path: str = "") -> Joystick:
        """Inverse of ``to_fields``; ``pressed`` counts only without ``buttons_hex``."""
        known = ("absent", "axes", "button_count", "buttons_hex", "pressed", "povs")
        for key in fields.keys() - set(known):
            raise EncodeError(f"{path}{key}: no such field", f"{path}{key}")
        absent = fields.get("absent", False)
        if not isinstance(absent, bool):
            raise EncodeError(f"{path}absent: boolean expected, got {absent!r:.40}", f"{path}absent")
        present = {"axes": [], "button_count": 0, "povs": []} | dict(fields) if absent else fields
        axes = _AXES.from_fields({key: present[key] for key in ("axes",) if key in present}, path).axes
        povs = _POVS.from_fields({key: present[key] for key in ("povs",) if key in present}, path).povs
        if "button_count" not in present:
            raise EncodeError(f"{path}button_count: missing", f"{path}button_count")
        count = expect_int(present["button_count"], f"{path}button_count")
        if not 0 <= count <= 0xFF:
            raise EncodeError(f"{path}button_count: {count} is not in 0..255", f"{path}button_count")
        return Joystick(absent, axes, count, _buttons(present, count, path), povs)


def _buttons(fields: Mapping[str, Any], count: int, path: str) -> bytes:
    if "buttons_hex" in fields:
        return hex_octets(fields["buttons_hex"], f"{path}buttons_hex")
    pressed = fields.get("pressed", [] if count == 0 else None)
    if not isinstance(pressed, list | tuple):
        raise EncodeError(f"{path}buttons_hex: missing, and no list of pressed buttons", f"{path}buttons_hex")
    bits = 0
    for index, number in enumerate(pressed):
        name = f"{path}pressed[{index}]"
        if not 1 <= expect_int(number, name) <= count:
            raise EncodeError(f"{name}: {number} is not in 1..{count}", name)
        bits |= 1 << number - 1
    return bits.to_bytes((count + 7) // 8)


class _Output(Packet, frozen=True):
    """Payload of a joystick that gets something."""

    outputs: Annotated[int, U32]
    rumble_a: Annotated[int, U16]
    rumble_b: Annotated[int, U16]


_OUTPUT = compile_codec(_Output)


class JoystickOutput(Tag, frozen=True):
    """What the robot sends to one joystick slot; bit 0 of ``outputs`` is output 1. All None for an absent slot.

    Which of the two rumbles is left is undecided.
    """

    ID, NAME = 0x01, "joystick_output"
    outputs: int | None = None
    rumble_a: int | None = None
    rumble_b: int | None = None

    @property
    def absent(self) -> bool:
        """True for a slot without joystick."""
        return self.outputs is None


class JoystickOutputCodec:
    """Codec of a JoystickOutput; the empty payload is an absent slot."""

    def decode(self, data: bytes) -> JoystickOutput:
        """The output; DecodeError unless ``data`` is exactly one."""
        if not data:
            return JoystickOutput()
        output: _Output = _OUTPUT.decode(data)
        return JoystickOutput(output.outputs, output.rumble_a, output.rumble_b)

    def read(self, data: bytes, at: int) -> tuple[JoystickOutput, int]:
        """An output fills its tag."""
        return self.decode(data[at:]), len(data)

    def write(self, packet: JoystickOutput, path: str = "") -> bytes:
        """The octets; EncodeError for what does not fit."""
        values = (packet.outputs, packet.rumble_a, packet.rumble_b)
        if values == (None, None, None):
            return b""
        return _OUTPUT.write(_Output(*values), path)  # type: ignore[arg-type]  # the codec judges what is no integer

    def to_fields(self, packet: JoystickOutput) -> dict[str, Any]:
        """JSON form."""
        values = {"outputs": packet.outputs, "rumble_a": packet.rumble_a, "rumble_b": packet.rumble_b}
        return {"absent": packet.absent, **values}

    def from_fields(self, fields: Any, path: str = "") -> JoystickOutput:
        """Inverse of ``to_fields``."""
        absent = fields.get("absent", False)
        if not isinstance(absent, bool):
            raise EncodeError(f"{path}absent: boolean expected, got {absent!r:.40}", f"{path}absent")
        values = {key: value for key, value in fields.items() if key != "absent"}
        if not absent:
            output: _Output = _OUTPUT.from_fields(values, path)
            return JoystickOutput(output.outputs, output.rumble_a, output.rumble_b)
        for key, value in values.items():
            if key not in _Output.__struct_fields__ or value is not None:
                raise EncodeError(f"{path}{key}: an absent slot has none", f"{path}{key}")
        return JoystickOutput()
