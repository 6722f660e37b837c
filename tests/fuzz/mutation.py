"""Inputs to try when no coverage-guided fuzzer is there: seeds cut, spliced, and changed by bits, bytes and words."""

import random
from collections.abc import Iterator, Sequence

__all__ = ["inputs"]

MAX_BYTES = 1 << 16
INTERESTING = (0, 1, 0x0A, 0x20, 0x22, 0x2F, 0x5C, 0x7F, 0x80, 0xFF)
WORDS = (
    b"\0\0",
    b"\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"9" * 20,
    b"-1",
    b"1e999",
    b"null",
    b'"',
    b"{",
    b"]",
)


def inputs(seeds: Sequence[bytes], rng: random.Random) -> Iterator[bytes]:
    """First every seed as it is, then mutations for ever; the same ones for the same generator."""
    yield from seeds
    while True:
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.choice((1, 1, 2, 3, 8))):
            _change(data, seeds, rng)
        yield bytes(data[:MAX_BYTES])


def _change(data: bytearray, seeds: Sequence[bytes], rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    size = min(rng.choice((1, 2, 4, 16, 64)), len(data) - at)
    kind = rng.randrange(8)
    if kind == 0 and size:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1 and size:
        data[at] = rng.choice(INTERESTING)
    elif kind == 2:
        del data[at : at + size]
    elif kind == 3:
        data[at:at] = data[at : at + size] * rng.choice((1, 1, 4, 50))
    elif kind == 4:
        data[at : at + size] = rng.choice(WORDS)
    elif kind == 5:
        other = rng.choice(seeds)
        cut = rng.randrange(len(other) + 1)
        data[at:] = other[cut:]
    elif kind == 6:
        del data[at:]
    else:
        data[at:at] = rng.randbytes(size or 1)
