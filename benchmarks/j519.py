"""Packet codecs against bare struct calls: ratios within one process, minimum of many repeats of both sides.

``python -m benchmarks.j519`` prints the table and exits 1 if a figure is above its limit.
"""

import struct
import sys
import timeit
from collections.abc import Callable

import msgspec

from aoabridge.codecs import frc_ds, j519, teleop
from aoabridge.codecs.frc_ds import DsControl
from aoabridge.codecs.frc_ds.joystick import Joystick
from aoabridge.codecs.j519.packets import Motion, Status
from aoabridge.simulators.ds import DriverStation, DsSettings, RobotLink
from aoabridge.sources.j519_topics import struct_bytes

Row = tuple[str, float, float | None, str]

REPEATS = 30
LOOPS = 3_000
AXES = (10.0, -20.5, 30.25, -45.0, 90.0, -179.9, 0.0, 0.0, 0.0)

_STATUS = struct.Struct(">IIIBBHHHI27f")
_MOTION = struct.Struct(">IIIBBHHBBHHHH9f")
_UPLINK = struct.Struct("<hhhhIIHhihhhh")
UPLINK_VALUES = (0xAAA, 0xAF1, 0x00A, 0, 117_000_000, 39_000_000, 9000, 1234, -500, 1, 0, 2100, 0)
FMS_PACKET = bytes.fromhex("00070004000302000c0100000000000000010b7e0087")


def _seconds(*sides: tuple[Callable[..., object], tuple[object, ...]]) -> list[float]:
    """Best time of one call of each; the sides alternate, because a busy machine slows all of them."""
    timers = []
    for call, arguments in sides:
        names = {f"a{i}": argument for i, argument in enumerate(arguments)}
        timers.append(timeit.Timer(f"call({', '.join(names)})", globals={"call": call, **names}))
    best = [float("inf")] * len(sides)
    for _ in range(REPEATS):
        for index, timer in enumerate(timers):
            best[index] = min(best[index], timer.timeit(LOOPS) / LOOPS)
    return best


def rows() -> list[Row]:
    """(name, measured, limit or None, unit): ratios in "x", times in "us"."""
    values = (0, 1, 77, 15, 0, 0, 0, 0, 1234, *AXES, *AXES, *AXES)
    status_bytes = _STATUS.pack(*values)
    status = j519.decode(j519.FROM_ROBOT, status_bytes)
    assert isinstance(status, Status)
    motion = Motion(1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, AXES)
    motion_values = (1, 1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, *AXES)
    uplink_bytes = _UPLINK.pack(*UPLINK_VALUES)
    uplink_packet = teleop.decode(uplink_bytes)
    unpack, decode, pack, encode, to_struct, fields = _seconds(
        (_STATUS.unpack, (status_bytes,)),
        (j519.decode, (j519.FROM_ROBOT, status_bytes)),
        (_MOTION.pack, motion_values),
        (j519.encode, (motion,)),
        (struct_bytes, (status,)),
        (j519.to_fields, (status,)),
    )
    bare_uplink, uplink, bare_pack, uplink_encode, fms, joysticks = _seconds(
        (_UPLINK.unpack, (uplink_bytes,)),
        (teleop.decode, (uplink_bytes,)),
        (_UPLINK.pack, UPLINK_VALUES),
        (teleop.encode, (uplink_packet,)),
        (frc_ds.decode, ("fms2ds-udp", FMS_PACKET)),
        (frc_ds.decode, ("ds2rio-udp", six_joysticks())),
    )
    return [
        ("j519 checked Status decode / unpack", decode / unpack, 2.0, "x"),
        ("j519 Motion encode / pack", encode / pack, 2.6, "x"),
        ("j519 Status decode", decode * 1e6, None, "us"),
        ("j519 Motion encode", encode * 1e6, None, "us"),
        ("j519 Status to NT struct", to_struct * 1e6, None, "us"),
        ("j519 Status to JSON fields", fields * 1e6, None, "us"),
        ("fms2ds-udp decode, 22 octets", fms * 1e6, 4.0, "us"),
        ("frc_ds decode, a control datagram with 6 joysticks", joysticks * 1e6, 40.0, "us"),
        ("teleop checked uplink decode / unpack", uplink / bare_uplink, 2.5, "x"),
        ("teleop uplink encode / pack", uplink_encode / bare_pack, 1.6, "x"),
    ]


def six_joysticks() -> bytes:
    """A control datagram of a driver station with all the joysticks that it can have."""
    link = RobotLink(DriverStation(DsSettings(), 0.0), 0.0)
    for second in range(3):  # the joysticks come behind what is told once
        link.on_tick(float(second))
        control = frc_ds.decode("ds2rio-udp", link.take_datagrams()[-1])
    assert isinstance(control, DsControl)
    joystick = next(tag for tag in control.tags if isinstance(tag, Joystick))
    return frc_ds.encode("ds2rio-udp", msgspec.structs.replace(control, tags=(joystick,) * 6))


def main() -> int:
    """Print the table; 1 if a limit is missed."""
    missed = False
    for name, measured, limit, unit in rows():
        bad = limit is not None and measured > limit
        missed = missed or bad
        target = "" if limit is None else f"  <= {limit:g} {unit}"
        print(f"{name:42} {measured:8.3f} {unit}{target}{'  MISSED' if bad else ''}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
