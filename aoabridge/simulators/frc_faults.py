"""What goes wrong on the driver station links on purpose: each fault hits a seeded two percent of what is sent."""

import random
from collections import Counter
from collections.abc import Callable, Iterable

__all__ = ["DATAGRAM_FAULTS", "FAULT_SHARE", "STREAM_FAULTS", "FrcFaults", "parse_frc_faults"]

FAULT_SHARE = 0.02
SLOW_S = 0.2  # between the two halves of a frame
_CUT = 5  # octets of a truncated datagram: shorter than every header
_STATION_AT = {"fms2ds-udp": 5, "ds2rio-udp": 5}
_LEVEL_AT = {"fms2ds-udp": 6}
_TEXT_TAGS = {"fms2ds-udp": b"\x03\x20\xff\xfe", "ds2rio-udp": b"\x03\x10\xff\xfe"}
FOREIGN_LEVEL = 84  # a number that was seen in public logs
FOREIGN_STATION = 6


def _patched(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + bytes([value]) + data[at + 1 :]


def _station_6(protocol: str, data: bytes) -> bytes | None:
    at = _STATION_AT.get(protocol)
    return None if at is None else _patched(data, at, FOREIGN_STATION)


def _bad_level(protocol: str, data: bytes) -> bytes | None:
    at = _LEVEL_AT.get(protocol)
    return None if at is None else _patched(data, at, FOREIGN_LEVEL)


def _bad_text(protocol: str, data: bytes) -> bytes | None:
    tag = _TEXT_TAGS.get(protocol)
    return None if tag is None else data + tag


_CHANGES: dict[str, Callable[[str, bytes], bytes | None]] = {
    "truncate": lambda _, data: data[:_CUT],
    "zero-tag": lambda _, data: data + b"\0",
    "overrun": lambda _, data: data + b"\x10\xee",
    "unknown-tag": lambda _, data: data + b"\x02\xee\0",
    "bad-text": _bad_text,
    "bad-level": _bad_level,
    "station-6": _station_6,
}
DATAGRAM_FAULTS = ("loss", "dup", "reorder", *_CHANGES)
STREAM_FAULTS = ("split", "merge", "half-close", "slow")


def parse_frc_faults(text: str) -> tuple[str, ...]:
    """Names separated by blanks or commas; ``all`` stands for every one. ValueError names what is none."""
    names = text.replace(",", " ").split()
    if names == ["all"]:
        return DATAGRAM_FAULTS + STREAM_FAULTS
    for name in names:
        if name not in DATAGRAM_FAULTS + STREAM_FAULTS:
            raise ValueError(f"unknown fault {name!r}; known: {' '.join(DATAGRAM_FAULTS + STREAM_FAULTS)}")
    return tuple(names)


class FrcFaults:
    """Disturbs what is sent; at most one fault hits a datagram. ``injected`` counts ``<protocol id>/<fault>``.

    ``loss`` is a share of its own, on top of the fault of that name.
    """

    def __init__(self, names: Iterable[str] = (), *, seed: int = 1, loss: float = 0.0) -> None:
        self.injected: Counter[str] = Counter()
        self._names = tuple(names)
        self._loss = loss
        self._random = random.Random(seed)
        self._held: dict[str, bytes] = {}  # a datagram that the next one of its protocol overtakes
        self._unsent: dict[int, bytes] = {}  # frames of a connection that wait for company

    def _hit(self, protocol: str, name: str) -> bool:
        if name not in self._names or self._random.random() >= FAULT_SHARE:
            return False
        self.injected[f"{protocol}/{name}"] += 1
        return True

    def datagrams(self, protocol: str, data: bytes) -> list[bytes]:
        """What leaves in place of one datagram."""
        held = self._held.pop(protocol, None)
        if held is not None:
            return [data, held]
        if self._is_lost(protocol):
            return []
        for name, change in _CHANGES.items():
            changed = change(protocol, data)
            if changed is not None and self._hit(protocol, name):
                return [changed]
        if self._hit(protocol, "reorder"):
            self._held[protocol] = data
            return []
        return [data] * (2 if self._hit(protocol, "dup") else 1)

    def _is_lost(self, protocol: str) -> bool:
        if self._loss and self._random.random() < self._loss:
            self.injected[f"{protocol}/loss"] += 1
            return True
        return self._hit(protocol, "loss")

    def pieces(self, protocol: str, connection: int, data: bytes) -> list[tuple[bytes, float]]:
        """What is written in place of some frames, each piece with the pause before it, in seconds."""
        data = self._unsent.pop(connection, b"") + data
        if self._hit(protocol, "merge"):
            self._unsent[connection] = data
            return []
        half = len(data) // 2
        if half and self._hit(protocol, "split"):
            return [(data[:half], 0.0), (data[half:], 0.0)]
        if half and self._hit(protocol, "slow"):
            return [(data[:half], 0.0), (data[half:], SLOW_S)]
        return [(data, 0.0)]

    def closes(self, protocol: str) -> bool:
        """Whether the connection is to end now."""
        return self._hit(protocol, "half-close")
