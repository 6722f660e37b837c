"""The robot's end of the driver station link: answers every datagram, talks on the console. For the bench. Sans-IO.

Times are seconds of one monotonic clock. Sources: captures of 2021 and 2024, WPILib 2026.
"""

import math
from collections import Counter

from aoabridge.codecs import frc_ds
from aoabridge.codecs.frc_ds import FrameReader, Tag, TcpFrames, ds_rio
from aoabridge.codecs.frc_ds.builders import build_rio_status
from aoabridge.codecs.frc_ds.ds_rio import (
    CanMetrics,
    CpuInfo,
    CpuLoad,
    DateTag,
    DisableFaults,
    DiskInfo,
    ErrorMessage,
    PdpLog,
    RailFaults,
    RamInfo,
    StandardOutput,
    VersionInfo,
)
from aoabridge.codecs.frc_ds.enums import ErrorFlags
from aoabridge.codecs.frc_ds.joystick import JoystickOutput
from aoabridge.codecs.frc_ds.values import Single
from aoabridge.errors import DecodeError

__all__ = ["RobotEnd"]

TAG_S = 1.0  # each status tag once in this time
CONSOLE_S = 1.0
SLOTS = 6
RAM_BYTES, DISK_BYTES = 120_000_000, 350_000_000
VERSIONS = (("FRC_Lib_Version", "Java 2026.1.1"), ("SoftwareVersion", "2026_v1.0"))
LIST_END = VersionInfo(0, 0, 0, "", "")
UDP, TCP = "rio2ds-udp", "rio2ds-tcp"


class RobotEnd:
    """``counters`` of what came and left; its clock is unknown until the driver station has told it."""

    def __init__(self, now: float, *, battery_volts: float = 12.5) -> None:
        self.counters: Counter[str] = Counter()
        self._battery_volts = battery_volts
        self._begin = now
        self._knows_date = False
        self._tags_at = now
        self._console_at = now
        self._sequence = 0
        self._datagrams: list[bytes] = []
        self._readers: dict[int, FrameReader] = {}
        self._frames: list[tuple[int, bytes]] = []

    def on_datagram(self, data: bytes, now: float) -> None:
        """A control datagram; the answer is among the next datagrams."""
        try:
            packet = frc_ds.decode("ds2rio-udp", data)
        except DecodeError:
            self.counters["rejected"] += 1
            return
        self.counters["datagrams_in"] += 1
        self._knows_date = self._knows_date or any(isinstance(tag, DateTag) for tag in packet.tags)
        tags: tuple[Tag, ...] = ()
        if now >= self._tags_at:
            self._tags_at = max(self._tags_at + TAG_S, now)
            tags = self._tags(now)
        enabled = packet.control.enabled and not packet.control.estop
        status = build_rio_status(
            packet.sequence,
            mode=packet.control.mode,
            enabled=enabled,
            estop=packet.control.estop,
            battery_volts=self._battery_volts - (0.5 if enabled else 0.0),
            request_date=not self._knows_date,
            tags=tags,
        )
        self.counters["datagrams_out"] += 1
        self._datagrams.append(frc_ds.encode(UDP, status))

    def _tags(self, now: float) -> tuple[Tag, ...]:
        load = 20.0 + 10.0 * math.sin(now - self._begin)
        outputs = [JoystickOutput(1, 0, 0xFFFF), JoystickOutput(0, 0x8000, 0)]
        outputs += [JoystickOutput()] * (SLOTS - len(outputs))
        return (
            DiskInfo(0, DISK_BYTES),
            CpuInfo((_load(load), _load(load / 2))),
            RamInfo(0, RAM_BYTES),
            PdpLog(bytes(25)),
            CanMetrics(Single.of(0.25), 0, 0, 0, 0),
            *outputs,
        )

    def on_connection(self, number: int, connected: bool) -> None:
        """A console viewer or driver station connects, or goes."""
        if not connected:
            self._readers.pop(number, None)
            return
        self._readers[number] = FrameReader("ds2rio-tcp")
        versions = (VersionInfo(0, 0, 0, name, version) for name, version in VERSIONS)
        self._say(number, *versions, LIST_END, DisableFaults(0, 0), RailFaults(0, 0, 0))

    def on_stream(self, number: int, data: bytes) -> None:
        """Bytes of a connection."""
        reader = self._readers.get(number)
        for frame in reader.feed(data) if reader is not None else ():
            self.counters["frames_in"] += 1
            if isinstance(frame.tag, ds_rio.MatchInfo):
                self.counters["matches"] += 1

    def on_tick(self, now: float) -> None:
        """Console lines."""
        if now < self._console_at:
            return
        self._console_at = max(self._console_at + CONSOLE_S, now)
        elapsed_s = now - self._begin
        stamp = Single.of(elapsed_s)
        for number in self._readers:
            line = StandardOutput(stamp, self._sequence & 0xFFFF, f"running for {elapsed_s:.0f} s\n")
            warning = ErrorMessage(
                stamp,
                (self._sequence + 1) & 0xFFFF,
                1,
                44_002,
                ErrorFlags(0),
                "Ignoring simulated overrun",
                "Robot.loop",
                "Robot.java:42",
            )
            self._say(number, line, warning)
        self._sequence += 2

    def next_deadline(self, now: float) -> float:
        """When ``on_tick`` is wanted."""
        return max(now, self._console_at)

    def take_datagrams(self) -> list[bytes]:
        """Remove and return the answers."""
        taken, self._datagrams = self._datagrams, []
        return taken

    def take_frames(self) -> list[tuple[int, bytes]]:
        """Remove and return (connection, bytes) to write."""
        taken, self._frames = self._frames, []
        return taken

    def _say(self, number: int, *tags: Tag) -> None:
        self.counters["frames_out"] += len(tags)
        self._frames.append((number, frc_ds.encode(TCP, TcpFrames(tags))))


def _load(percent: float) -> CpuLoad:
    return CpuLoad(Single.of(1.0), Single.of(2.0), Single.of(percent), Single.of(0.5))
