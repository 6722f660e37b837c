"""The byte stream of a phone: lines out of chunks, and lines into USB transfers.

Inbound a line may span any number of chunks. Outbound whole lines are packed into one transfer; every byte that the
phone accepted is accounted for, so that a transfer cut anywhere continues without a broken or doubled line.
"""

from collections.abc import Callable
from enum import IntEnum

import msgspec

__all__ = [
    "MAX_LINE_OUT",
    "MAX_TRANSFER",
    "InboundLine",
    "LineDecoder",
    "LineKind",
    "LinePacker",
    "OutLine",
    "TransferResult",
]

MAX_TRANSFER = 16_383  # Android reads 16 384; a full buffer would need a zero-length packet to end
MAX_LINE_OUT = 4 * 1024 * 1024  # the known app drops its whole buffer above this
EXCERPT_BYTES = 120  # as much of a refused line as the error to the phone repeats
BOM = b"\xef\xbb\xbf"


class InboundLine(msgspec.Struct, frozen=True, gc=False):
    """One line without its line end, or the beginning of one that is over the limit (``oversize``).

    ``early`` marks a line whose first byte came before ``LineDecoder.end_backlog``.
    """

    data: bytes
    oversize: bool = False
    early: bool = False


class LineDecoder:
    """Chunks in, lines out. Holds at most ``max_line_bytes`` of an unfinished line."""

    def __init__(self, max_line_bytes: int, *, early: bool = False) -> None:
        self._max = max_line_bytes
        self._parts: list[bytes] = []
        self._held = 0
        self._skipping = False
        self._at_start = True
        self._early_now = early
        self._line_early = early

    def end_backlog(self) -> None:
        """Lines that begin from here on are not early."""
        self._early_now = False
        if not self._held and not self._skipping:
            self._line_early = False

    def resync(self) -> None:
        """Bytes were lost: drop what is held, and everything up to the next LF."""
        self._parts.clear()
        self._held = 0
        self._skipping = True

    def feed(self, chunk: bytes) -> list[InboundLine]:
        """Return the lines that this chunk completes; blank ones are dropped, a CR before the LF is too."""
        lines: list[InboundLine] = []
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._take(chunk[start:end], lines)
            self._finish(lines)
            start = end + 1
        if start < len(chunk):
            self._take(chunk[start:], lines)
        return lines

    def _take(self, part: bytes, lines: list[InboundLine]) -> None:
        if self._skipping or not part:
            return
        self._parts.append(part)
        self._held += len(part)
        # One byte more than the limit may be the CR of a line that is just at it.
        if self._held > self._max + 1 or (self._held > self._max and not part.endswith(b"\r")):
            lines.append(InboundLine(b"".join(self._parts)[:EXCERPT_BYTES], oversize=True, early=self._line_early))
            self.resync()

    def _finish(self, lines: list[InboundLine]) -> None:
        if self._held:
            data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            if self._at_start and data.startswith(BOM):
                data = data[len(BOM) :]
            data = data.removesuffix(b"\r")
            if data and not data.isspace():
                lines.append(InboundLine(data, early=self._line_early))
            self._at_start = False
        self._parts.clear()
        self._held = 0
        self._skipping = False
        self._line_early = self._early_now


class LineKind(IntEnum):
    """What a line that was not sent means for its owner."""

    CONTROL = 0  # must be sent again as it is
    SAMPLE = 1  # one of an every-sample topic: returns to its lane
    VALUE = 2  # is built afresh from the newest value


class OutLine(msgspec.Struct, frozen=True, gc=False):
    """One complete line, LF included; ``owner`` is whatever the outbox needs to take it back."""

    data: bytes
    kind: LineKind
    owner: object = None


class TransferResult(msgspec.Struct, frozen=True):
    """Lines wholly sent, and lines of which no byte was sent, both in order."""

    sent: list[OutLine]
    returned: list[OutLine]


class _Segment(msgspec.Struct, frozen=True):
    """A run of bytes of one transfer: of a line (``later`` are its bytes that did not fit), or blank (no line)."""

    data: bytes
    line: OutLine | None = None
    later: bytes = b""
    begun: bool = False  # earlier bytes of the line have been accepted


class LinePacker:
    """Builds one transfer at a time and accounts for what the phone accepted of it.

    Every transfer is at most 16 383 bytes and never a multiple of the packet size: an Android read ends on a short
    packet, so an exact multiple would leave the app waiting. A blank line is the filler.
    """

    def __init__(self, packet_size: int) -> None:
        self._packet_size = packet_size
        self._line: OutLine | None = None  # the line of which a part has been accepted
        self._rest = b""  # its bytes that are still to be sent
        self._break_line = True  # the app may hold half a line of an earlier host
        self._segments: list[_Segment] = []

    @property
    def mid_line(self) -> bool:
        """True if the phone has got a part of a line whose rest must follow before anything else."""
        return bool(self._rest)

    def take(self, pull: Callable[[int, bool], OutLine | None], *, probe: bool = False) -> bytes:
        """Build the next transfer, b"" if there is nothing to send.

        ``pull(room, empty)`` gives the next line; it must fit ``room`` unless ``empty`` (then it may be longer).
        ``probe`` sends the rest of a half-sent line or else one blank line, and pulls nothing.
        """
        segments = self._segments = []
        size = 0
        if self._break_line or (probe and not self._rest):
            segments.append(_Segment(b"\n"))
            size = 1
        fillers = size
        line, data, begun = self._line, self._rest, True
        while True:
            if data:
                room = MAX_TRANSFER - size
                piece = data if len(data) <= room else self._cut(data[:room], size)
                segments.append(_Segment(piece, line, data[len(piece) :], begun))
                size += len(piece)
                if len(piece) < len(data):
                    return b"".join([segment.data for segment in segments])
            if probe:
                break
            line = pull(MAX_TRANSFER - size, size == fillers)
            if line is None:
                break
            data, begun = line.data, False
        if size == fillers and not probe:
            segments.clear()
            return b""
        if size % self._packet_size == 0:
            segments.append(_Segment(b"\n"))
        return b"".join([segment.data for segment in segments])

    def _cut(self, piece: bytes, before: int) -> bytes:
        """Shorten a piece that ends mid-line: before a lead byte of UTF-8, and off multiples of the packet size."""
        end = len(piece)
        while end > 1 and end > len(piece) - 3 and piece[end - 1] & 0xC0 == 0x80:
            end -= 1
        if piece[end - 1] >= 0xC0:
            end -= 1
        else:
            end = len(piece)
        return piece[: end - 1] if (before + end) % self._packet_size == 0 else piece[:end]

    def accepted(self, count: int) -> TransferResult:
        """Account for ``count`` accepted bytes of the transfer; the rest of a line that was cut goes first next."""
        sent: list[OutLine] = []
        returned: list[OutLine] = []
        if count:
            self._break_line = False
            self._line, self._rest = None, b""
        cut = False
        for segment in self._segments:
            got = min(count, len(segment.data))
            count -= got
            if got == len(segment.data) and not segment.later:
                if segment.line is not None:
                    sent.append(segment.line)
            elif got or segment.begun:
                self._line, self._rest = segment.line, segment.data[got:] + segment.later
                cut = True
            elif segment.line is not None:
                returned.append(segment.line)
            elif sent and not cut and not returned:
                self._rest = b"\n"  # only the filler is missing: the app's read waits for it
        self._segments = []
        return TransferResult(sent, returned)

    def failed(self) -> TransferResult:
        """The transfer failed and nobody knows how much of it arrived: everything returns, a line break goes first."""
        returned = [segment.line for segment in self._segments if segment.line is not None]
        self._segments = []
        self._line, self._rest = None, b""
        self._break_line = True
        return TransferResult([], returned)
