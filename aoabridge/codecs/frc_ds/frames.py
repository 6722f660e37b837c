"""TCP streams: frames of ``size:u16 id:u8 data[size-1]``, put together from any chunks."""

from typing import Any

import msgspec

from aoabridge.codecs.frc_ds.counting import unknown_values
from aoabridge.codecs.frc_ds.datagrams import count_unknown_tags
from aoabridge.codecs.frc_ds.tags import Fault, Keepalive, Tag, TagTable, UnknownTag
from aoabridge.errors import DecodeError, EncodeError

__all__ = ["MAX_FRAME", "Frame", "StreamReader", "TcpFrames", "TcpProtocol"]

MAX_FRAME = 65_537  # the largest size there is, and its own two octets
SIZE_OCTETS = 2


class Frame(msgspec.Struct, frozen=True):
    """One frame of a stream: its octets, what they mean, what is wrong with them; ``bytes(frame)`` are its octets."""

    data: bytes
    tag: Tag
    fault: Fault | None = None

    def __bytes__(self) -> bytes:
        return self.data

    @property
    def is_unknown(self) -> bool:
        """True if no table knows its id."""
        return self.fault is None and isinstance(self.tag, UnknownTag)

    @property
    def unknown_values(self) -> int:
        """Enumerations without a name and stations beyond 5."""
        return unknown_values(self.tag)


class TcpFrames(msgspec.Struct, frozen=True):
    """A run of frames in wire order."""

    frames: tuple[Tag, ...]
    faults: tuple[Fault, ...] = ()

    @property
    def unknown_tags(self) -> int:
        """Frames whose id no table knows."""
        return count_unknown_tags(self.frames, self.faults)

    @property
    def unknown_values(self) -> int:
        """Enumerations without a name and stations beyond 5."""
        return sum(map(unknown_values, self.frames))


class StreamReader:
    """Puts the frames of one direction of one connection together; linear in the bytes fed.

    ``pending`` bytes of an unfinished frame are held, never more than ``max_frame``.
    """

    def __init__(self, table: TagTable, *, max_frame: int = MAX_FRAME) -> None:
        self._table = table
        self._max_frame = max_frame
        self._buffer = bytearray()
        self._begin = 0  # offset in the stream of the frame in the buffer

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete."""
        return len(self._buffer)

    @property
    def _wanted(self) -> int:
        """Length of what the buffer must hold next: the size, then the whole frame."""
        if len(self._buffer) < SIZE_OCTETS:
            return SIZE_OCTETS
        return SIZE_OCTETS + int.from_bytes(self._buffer[:SIZE_OCTETS])

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that ``chunk`` completes; DecodeError for one larger than ``max_frame``."""
        frames: list[Frame] = []
        buffer, at = self._buffer, 0
        while at < len(chunk):
            piece = chunk[at : at + self._wanted - len(buffer)]
            buffer += piece
            at += len(piece)
            wanted = self._wanted
            if len(buffer) < SIZE_OCTETS or len(buffer) < wanted:
                if len(buffer) >= SIZE_OCTETS and wanted > self._max_frame:
                    raise DecodeError(f"a frame of {wanted} bytes, the limit is {self._max_frame}", self._begin)
                continue
            frames.append(self._frame(bytes(buffer)))
            self._begin += len(buffer)
            buffer.clear()
        return frames

    def close(self) -> None:
        """End the stream; TruncatedError if bytes are pending."""
        fault = self.incomplete()
        if fault is not None:
            raise fault.error()

    def incomplete(self) -> Fault | None:
        """The fault of what is pending, None if nothing is."""
        if not self._buffer:
            return None
        number = self._buffer[SIZE_OCTETS] if len(self._buffer) > SIZE_OCTETS else None
        return Fault("incomplete_frame", self._begin, number, self._wanted, len(self._buffer))

    def _frame(self, data: bytes) -> Frame:
        if len(data) == SIZE_OCTETS:
            return Frame(data, Keepalive())
        number, payload = data[SIZE_OCTETS], data[SIZE_OCTETS + 1 :]
        try:
            tag = self._table.decode(number, payload)
        except DecodeError:
            return Frame(data, UnknownTag(number, payload), Fault("bad_tag_payload", self._begin, number))
        return Frame(data, UnknownTag(number, payload) if tag is None else tag)


class TcpProtocol:
    """Codec of one direction."""

    packet_name = "frames"

    def __init__(self, name: str, table: TagTable) -> None:
        self.name = name
        self.table = table

    def decode(self, data: bytes, *, strict: bool = False) -> TcpFrames:
        """All complete frames; if ``strict`` the error of the first fault."""
        reader = StreamReader(self.table)
        frames = reader.feed(bytes(data))
        faults = [fault for frame in frames if (fault := frame.fault) is not None]
        cut = reader.incomplete()
        if cut is not None:
            faults.append(cut)
        if strict and faults:
            raise faults[0].error()
        return TcpFrames(tuple(frame.tag for frame in frames), tuple(faults))

    def encode(self, packet: TcpFrames) -> bytes:
        """The bytes of the run; EncodeError names the field that does not fit."""
        if not isinstance(packet, TcpFrames):
            raise EncodeError(f"{type(packet).__name__} is not a run of frames")
        return b"".join(self.table.encode(tag, f"frames[{index}]") for index, tag in enumerate(packet.frames))

    def to_fields(self, packet: TcpFrames) -> dict[str, Any]:
        """JSON form."""
        return {"frames": [self.table.to_fields(tag) for tag in packet.frames]}

    def from_fields(self, fields: Any) -> TcpFrames:
        """Inverse of ``to_fields``."""
        frames = fields.get("frames") if isinstance(fields, dict) else None
        if not isinstance(frames, list | tuple):
            raise EncodeError(f"frames: list expected, got {frames!r:.40}", "frames")
        for key in fields.keys() - {"frames"}:
            raise EncodeError(f"{key}: no such field", str(key))
        return TcpFrames(tuple(self.table.from_fields(tag, f"frames[{index}]") for index, tag in enumerate(frames)))
