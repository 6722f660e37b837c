"""The byte stream of a phone: lines out of chunks, and lines into USB transfers.

Inbound a line may span any number of chunks. Outbound whole lines are packed into one transfer; every byte that the
phone accepted is accounted for, so that a transfer cut anywhere continues without a broken or doubled line.
"""

from collections.abc import Callable
from enum import IntEnum

import msgspec

__all__ = [
    "EXCERPT_BYTES",
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
EXCERPT_BYTES = 480  # the error to the phone repeats 120 characters, of at most four bytes each
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
        self._held = bytearray()
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
        self._held.clear()
        self._at_start = False
        self._skipping = True

    def feed(self, chunk: bytes) -> list[InboundLine]:
        """Return the lines that this chunk completes; blank ones are dropped, a CR before the LF is too."""
        lines: list[InboundLine] = []
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._finish(chunk[start:end], lines)
            start = end + 1
        if start < len(chunk):
            self._hold(chunk[start:], lines)
        return lines

    def _hold(self, part: bytes, lines: list[InboundLine]) -> None:
        if self._skipping:
            return
        held = self._held
        held += part
        size = len(held) - (len(BOM) if self._at_start and held.startswith(BOM) else 0)
        # One byte more than the limit may be the CR of a line that is just at it.
        if size > self._max + 1 or (size > self._max and not held.endswith(b"\r")):
            lines.append(self._oversize(bytes(held[:EXCERPT_BYTES])))
            self.resync()

    def _finish(self, part: bytes, lines: list[InboundLine]) -> None:
        if not self._skipping:
            data = part
            if self._held:
                data = bytes(self._held) + part
                self._held.clear()
            if self._at_start and data:
                data = data.removeprefix(BOM)
                self._at_start = False
            data = data.removesuffix(b"\r")
            if len(data) > self._max:
                lines.append(self._oversize(data))
            elif data and not data.isspace():
                lines.append(InboundLine(data, early=self._line_early))
        self._skipping = False
        self._line_early = self._early_now

    def _oversize(self, data: bytes) -> InboundLine:
        return InboundLine(data[:EXCERPT_BYTES], oversize=True, early=self._line_early)


class LineKind(IntEnum):
    """What a line that was not sent means for its owner."""

    CONTROL = 0  # must be sent again as it is
    SAMPLE = 1  # one of an every-sample topic: returns to its lane
    VALUE = 2  # is built afresh from the newest value


class OutLine(msgspec.Struct, frozen=True):  # collectable: ``owner`` leads back to the link that holds it
    """One complete line, LF included; ``owner`` is whatever the outbox needs to take it back."""

    data: bytes
    kind: LineKind
    owner: object = None


class TransferResult(msgspec.Struct, frozen=True):
    """Lines wholly sent, and lines of which no byte was sent, both in order."""

    sent: list[OutLine]
    returned: list[OutLine]


class _Segment(msgspec.Struct, frozen=True):
    """A run of bytes of one transfer: ``at`` to ``end`` of a line, or a blank line."""

    data: bytes
    line: OutLine | None = None
    at: int = 0
    end: int = 0


class LinePacker:
    """Builds one transfer at a time and accounts for what the phone accepted of it.

    Every transfer is at most 16 383 bytes and never a multiple of the packet size: an Android read ends on a short
    packet, so an exact multiple would leave the app waiting. A blank line is the filler.
    """

    def __init__(self, packet_size: int) -> None:
        self._packet_size = packet_size
        self._line: OutLine | None = None  # the line of which the first ``_at`` bytes have been accepted
        self._at = 0
        self._break_line = True  # the app may hold half a line of an earlier host
        self._filler_owed = False  # all but the filler was accepted: the app's read waits for it
        self._segments: list[_Segment] = []

    @property
    def unfinished(self) -> OutLine | None:
        """The line of which the phone has got a part, and whose rest must follow before anything else."""
        return self._line

    def take(self, pull: Callable[[int, bool], OutLine | None], *, probe: bool = False) -> bytes:
        """Build the next transfer, b"" if there is nothing to send.

        ``pull(room, empty)`` gives the next line; it must fit ``room`` unless ``empty`` (then it may be longer).
        ``probe`` sends the rest of a half-sent line or else one blank line, and pulls nothing.
        """
        segments = self._segments = []
        line, at = self._line, self._at
        if self._break_line or self._filler_owed or (probe and line is None):
            segments.append(_Segment(b"\n"))
        fillers = size = len(segments)
        while True:
            if line is not None:
                end = self._end_of_piece(line.data, at, size)
                segments.append(_Segment(line.data[at:end], line, at, end))
                size += end - at
                if end < len(line.data):
                    return self._joined()
            line, at = (None if probe else pull(MAX_TRANSFER - size, size == fillers)), 0
            if line is None:
                break
        if size == fillers and not probe and not self._filler_owed:
            segments.clear()
        elif size % self._packet_size == 0:
            segments.append(_Segment(b"\n"))
        return self._joined()

    def _joined(self) -> bytes:
        return b"".join([segment.data for segment in self._segments])

    def _end_of_piece(self, data: bytes, at: int, before: int) -> int:
        """Where a transfer that has ``before`` bytes must cut the line: never if it fits.

        A piece ends before the first byte of a character, and off multiples of the packet size.
        """
        end = at + MAX_TRANSFER - before
        if end >= len(data):
            return len(data)
        while end > at + 1 and (data[end] & 0xC0 == 0x80 or (before + end - at) % self._packet_size == 0):
            end -= 1
        return end

    def accepted(self, count: int) -> TransferResult:
        """Account for ``count`` accepted bytes of the transfer; the rest of a line that was cut goes first next."""
        sent: list[OutLine] = []
        returned: list[OutLine] = []
        if count:
            self._break_line = self._filler_owed = False
            self._line, self._at = None, 0
        for segment in self._segments:
            got = min(count, len(segment.data))
            count -= got
            if segment.line is None:
                self._filler_owed |= not got and bool(sent) and not returned and self._line is None
            elif segment.at + got == len(segment.line.data):
                sent.append(segment.line)
            elif got or segment.at:
                self._line, self._at = segment.line, segment.at + got
            else:
                returned.append(segment.line)
        self._segments = []
        return TransferResult(sent, returned)

    def failed(self) -> TransferResult:
        """The transfer failed and nobody knows how much of it arrived: everything returns, a line break goes first."""
        returned = [segment.line for segment in self._segments if segment.line is not None]
        self._segments = []
        self._line, self._at = None, 0
        self._filler_owed, self._break_line = False, True
        return TransferResult([], returned)
