"""WPILOG files, version 1.0: values to bytes. Source: the data log format of WPILib (datalog.adoc).

A file is a header and records: lengths, entry, payload size, time, payload; all little-endian, numbers in as few bytes
as they need. Entry 0 holds control records, which name the others.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

__all__ = ["WpilogEncoder"]

VERSION: Final = 0x0100
START, FINISH = 0, 1


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    return struct.pack("<I", len(data)) + data


def _row(letter: str) -> Callable[[Sequence[Any]], bytes]:
    return lambda values: struct.pack(f"<{len(values)}{letter}", *values)


def _strings(values: Sequence[str]) -> bytes:
    return struct.pack("<I", len(values)) + b"".join(map(_text, values))


def _utf8(value: str) -> bytes:
    return value.encode("utf-8", "replace")


_PAYLOADS: Final[Mapping[str, Callable[[Any], bytes]]] = {
    "boolean": struct.Struct("<?").pack,
    "int64": struct.Struct("<q").pack,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "string": _utf8,
    "json": _utf8,
    "boolean[]": _row("?"),
    "int64[]": _row("q"),
    "float[]": _row("f"),
    "double[]": _row("d"),
    "string[]": _strings,
}


class WpilogEncoder:
    """Turns the values of named entries into the bytes of one file, in order; ``header`` comes first.

    Types are those of WPILOG; a type without a form of its own takes bytes. An entry whose type changes is finished
    and begins anew. TypeError, AttributeError or struct.error for a value that is not of its type.
    """

    def __init__(self, header: str) -> None:
        self.header = b"WPILOG" + struct.pack("<H", VERSION) + _text(header)
        self._entries: dict[str, tuple[int, str, Callable[[Any], bytes]]] = {}
        self._last = 0

    def record(self, entry: str, type_: str, metadata: str, value: Any, time_us: int) -> bytes:
        """A value, after whatever its entry needs before it; ``metadata`` counts where the entry begins."""
        known = self._entries.get(entry)
        if known is not None and known[1] == type_:
            return _record(known[0], time_us, known[2](value))
        pack = _PAYLOADS.get(type_, bytes)
        payload = pack(value)
        finish = b"" if known is None else _record(0, time_us, struct.pack("<BI", FINISH, known[0]))
        self._last += 1
        self._entries[entry] = self._last, type_, pack
        names = _text(entry) + _text(type_) + _text(metadata)
        start = _record(0, time_us, struct.pack("<BI", START, self._last) + names)
        return finish + start + _record(self._last, time_us, payload)


def _record(entry: int, time_us: int, payload: bytes) -> bytes:
    size = len(payload)
    entry_bytes = (entry.bit_length() + 7) // 8 or 1
    size_bytes = (size.bit_length() + 7) // 8 or 1
    time_bytes = (time_us.bit_length() + 7) // 8 or 1
    lengths = entry_bytes - 1 | size_bytes - 1 << 2 | time_bytes - 1 << 4
    time_at = entry_bytes + size_bytes  # one number whose bytes are the head
    head = lengths | entry << 8 | size << 8 * (1 + entry_bytes) | time_us << 8 * (1 + time_at)
    return head.to_bytes(1 + time_at + time_bytes, "little") + payload
