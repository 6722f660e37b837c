"""Makes a screenshot small: few colours, one byte per point."""

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MAX_COLOURS = 256


def shrink(path: Path) -> None:
    """Rewrite an 8-bit RGB or RGBA picture with at most 256 colours; they are rounded until they are few enough."""
    width, height, points = _read(path.read_bytes())
    for bits in range(1, 8):
        half = 1 << (bits - 1)
        table = bytes(min(255, ((value + half) >> bits) << bits) for value in range(256))
        rounded = points.translate(table)
        colours = Counter(rounded[at : at + 3] for at in range(0, len(rounded), 3))
        if len(colours) <= MAX_COLOURS:
            break
    order = [colour for colour, _ in colours.most_common()]
    number = {colour: index for index, colour in enumerate(order)}
    indices = bytes(number[rounded[at : at + 3]] for at in range(0, len(rounded), 3))
    rows = b"".join(b"\0" + indices[row * width : (row + 1) * width] for row in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = [(b"IHDR", head), (b"PLTE", b"".join(order)), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")]
    path.write_bytes(SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(SIGNATURE)
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        at += size + 12


def _read(data: bytes) -> tuple[int, int, bytes]:
    """Width, height and RGB points."""
    found = list(_chunks(data))
    width, height, depth, kind = struct.unpack_from(">IIBB", dict(found)[b"IHDR"])
    assert (depth, kind) in ((8, 2), (8, 6)), "an 8-bit RGB picture"
    step = 3 if kind == 2 else 4
    raw = zlib.decompress(b"".join(part for name, part in found if name == b"IDAT"))
    line = width * step
    before = bytearray(line)
    points = bytearray()
    for row in range(height):
        start = row * (line + 1)
        before = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + line]), before, step)
        for channel in range(0, line, step):
            points += before[channel : channel + 3]
    return width, height, bytes(points)


def _unfiltered(kind: int, line: bytearray, up: bytearray, step: int) -> bytearray:
    """One row without its prediction; PNG specification, section 9."""
    for at in range(len(line)):
        left = line[at - step] if at >= step else 0
        corner = up[at - step] if at >= step else 0
        guess = (0, left, up[at], (left + up[at]) // 2, _paeth(left, up[at], corner))[kind]
        line[at] = (line[at] + guess) & 0xFF
    return line


def _paeth(left: int, above: int, corner: int) -> int:
    estimate = left + above - corner
    return min((abs(estimate - value), order, value) for order, value in enumerate((left, above, corner)))[2]
