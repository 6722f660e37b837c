"""Version tags 0x00..0x07 of the FMS connection: status and version in one payload whose split nobody has published."""

from typing import Annotated, Any, ClassVar, NamedTuple

from aoabridge.codecs.frc_ds.parts import Rest
from aoabridge.codecs.frc_ds.payload import PayloadCodec
from aoabridge.codecs.frc_ds.tags import Tag
from aoabridge.codecs.frc_ds.values import TextValue, text_from_json, text_octets, text_of, text_to_json
from aoabridge.errors import EncodeError

__all__ = [
    "VERSION_TAGS",
    "CanJagVersion",
    "CanTalonVersion",
    "DsVersion",
    "PcmVersion",
    "PdpVersion",
    "RioVersion",
    "ThirdPartyVersion",
    "VersionCodec",
    "VersionTag",
    "WpilibVersion",
]


class _Split(NamedTuple):
    layout: str
    version_status: TextValue | None
    version: TextValue | None


class VersionTag(Tag, frozen=True):
    """Version of one part of the robot's system; the octets are the truth, the split is a best effort.

    ``device`` is its name below ``Versions/``.
    """

    data: Annotated[bytes, Rest()]
    device: ClassVar[str] = ""

    @property
    def layout(self) -> str:
        """``two_strings``, ``one_string``, ``bare`` or ``unknown``."""
        return _split(self.data).layout

    @property
    def version_status(self) -> TextValue | None:
        """``good``, ``bad``, ``preferred``, …; None if the layout is unknown."""
        return _split(self.data).version_status

    @property
    def version(self) -> TextValue | None:
        """The version itself."""
        return _split(self.data).version

    @property
    def raw_hex(self) -> str:
        """The payload."""
        return self.data.hex()


class WpilibVersion(VersionTag, frozen=True):
    """Version of WPILib."""

    ID, NAME, device = 0x00, "wpilib_version", "WPILib"


class RioVersion(VersionTag, frozen=True):
    """Version of the roboRIO image."""

    ID, NAME, device = 0x01, "rio_version", "RIO"


class DsVersion(VersionTag, frozen=True):
    """Version of the driver station."""

    ID, NAME, device = 0x02, "ds_version", "DS"


class PdpVersion(VersionTag, frozen=True):
    """Version of the power distribution panel."""

    ID, NAME, device = 0x03, "pdp_version", "PDP"


class PcmVersion(VersionTag, frozen=True):
    """Version of the pneumatics module."""

    ID, NAME, device = 0x04, "pcm_version", "PCM"


class CanJagVersion(VersionTag, frozen=True):
    """Version of Jaguar motor controllers."""

    ID, NAME, device = 0x05, "canjag_version", "CANJag"


class CanTalonVersion(VersionTag, frozen=True):
    """Version of Talon motor controllers."""

    ID, NAME, device = 0x06, "cantalon_version", "CANTalon"


class ThirdPartyVersion(VersionTag, frozen=True):
    """Version of a third party's device."""

    ID, NAME, device = 0x07, "third_party_version", "ThirdParty"


VERSION_TAGS: tuple[type[VersionTag], ...] = (
    WpilibVersion,
    RioVersion,
    DsVersion,
    PdpVersion,
    PcmVersion,
    CanJagVersion,
    CanTalonVersion,
    ThirdPartyVersion,
)


class VersionCodec(PayloadCodec[VersionTag]):
    """Octets as they are; written bare (``<good>1.2``) from status and version alone."""

    def to_fields(self, packet: VersionTag) -> dict[str, Any]:
        """The split, then ``raw_hex``."""
        layout, status, version = _split(packet.data)
        return {
            "layout": layout,
            "version_status": None if status is None else text_to_json(status),
            "version": None if version is None else text_to_json(version),
            "raw_hex": packet.raw_hex,
        }

    def from_fields(self, fields: Any, path: str = "") -> VersionTag:
        """``raw_hex`` if present, else status and version."""
        parts = {key: value for key, value in fields.items() if key not in ("layout", "version_status", "version")}
        if "raw_hex" in fields:
            return super().from_fields(parts, path)
        for key in parts:
            raise EncodeError(f"{path}{key}: no such field", f"{path}{key}")
        status, version = (_text(fields, key, path) for key in ("version_status", "version"))
        data = b"<" + status + b">" + version
        if _split(data) != ("bare", text_of(status), text_of(version)):
            name = f"{path}version_status"
            raise EncodeError(f"{name}: would be read back differently", name)
        return self.packet_class(data)


def _text(fields: dict[str, Any], key: str, path: str) -> bytes:
    return text_octets(text_from_json(fields.get(key), path + key), path + key)


def _split(data: bytes) -> _Split:
    """First match wins: two counted strings, one counted string ``<status>version``, the same without count."""
    first = _counted(data)
    if first is not None:
        text, rest = first
        second = _counted(rest)
        if second is not None and not second[1]:
            inner = text[1:-1] if text[:1] == b"<" and text[-1:] == b">" and len(text) > 1 else text
            return _Split("two_strings", text_of(inner), text_of(second[0]))
        if not rest and _is_bracketed(text):
            return _Split("one_string", *_bracketed(text))
    if _is_bracketed(data):
        return _Split("bare", *_bracketed(data))
    return _Split("unknown", None, None)


def _counted(data: bytes) -> tuple[bytes, bytes] | None:
    if not data or len(data) < 1 + data[0]:
        return None
    return data[1 : 1 + data[0]], data[1 + data[0] :]


def _is_bracketed(text: bytes) -> bool:
    return text[:1] == b"<" and b">" in text


def _bracketed(text: bytes) -> tuple[TextValue, TextValue]:
    status, _, version = text[1:].partition(b">")
    return text_of(status), text_of(version)
