"""What a struct schema may cost at most: every number that bounds time or memory for text from the network."""

from dataclasses import dataclass

__all__ = [
    "DEFAULT_LIMITS",
    "MAX_CACHED_CODECS",
    "MAX_CACHED_INLINE_TEXTS",
    "MAX_CACHED_VALUES",
    "MAX_INT_CHARS",
    "Limits",
]

MAX_INT_CHARS = 20  # an int64 with its sign; keeps int() away from texts that it refuses or that cost time

MAX_CACHED_CODECS = 256  # only types that a phone or a source uses are compiled; robots have 20 to 60
MAX_CACHED_VALUES = 65_536  # a bit-field costs up to 0.6 KB compiled: 40 MB worst
MAX_CACHED_INLINE_TEXTS = 64  # a phone repeats the same few texts; at most 64 KiB each


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one registry; beyond them a schema is refused and every other type goes on working."""

    text_bytes: int = 16_384  # the longest WPILib schema has 101 bytes; large team records stay under 2 000
    inline_bytes: int = 65_536  # read or written; nested types are repeated at each occurrence
    name_bytes: int = 255  # of types, fields and enum names; far above any real one
    fields: int = 1_024  # declarations of one schema: 1 024 bit-fields compile in 4 ms
    array: int = 4_096  # elements, except char: an array of empty structs has no size that would bound it
    size_bytes: int = 65_536  # of one value: beyond it the JSON form is useless on a phone
    values: int = 8_192  # leaves and dicts of one decoded struct: about 1 ms
    array_values: int = 65_536  # leaves and dicts of one decoded ``struct:X[]``: about 10 ms
    depth: int = 16  # WPILib's deepest type has 3 levels
    types: int = 1_024  # in one registry; robots have 20 to 60
    total_bytes: int = 1_048_576  # text in one registry: declarations take about 15 bytes per byte of it


DEFAULT_LIMITS = Limits()
