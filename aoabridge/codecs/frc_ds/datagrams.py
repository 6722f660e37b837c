"""One UDP protocol: a fixed header, then tags to the end of the datagram."""

from typing import Any, Generic, TypeVar

from aoabridge.codecs.frc_ds.counting import unknown_values
from aoabridge.codecs.frc_ds.tags import Fault, Tag, TagTable, UnknownTag
from aoabridge.codecs.packets import Packet, PacketCodec
from aoabridge.errors import DecodeError, EncodeError

__all__ = ["MAX_DATAGRAM", "TaggedPacket", "UdpProtocol", "count_unknown_tags", "faults_of", "tags_of"]

MAX_DATAGRAM = 65_507  # what IPv4 leaves for the payload of a UDP datagram


class TaggedPacket(Packet, frozen=True):
    """Base of the four datagrams: the wire fields of the class, then ``tags`` and ``faults`` in wire order."""

    @property
    def unknown_tags(self) -> int:
        """Tags whose id no table knows."""
        return count_unknown_tags(tags_of(self), faults_of(self))

    @property
    def unknown_values(self) -> int:
        """Enumerations without a name, modes 3, stations beyond 5, in header and tags."""
        return unknown_values(self, *tags_of(self))


def tags_of(packet: TaggedPacket) -> tuple[Tag, ...]:
    """Every tag of a datagram, also unknown and broken ones."""
    found: tuple[Tag, ...] = getattr(packet, "tags")  # noqa: B009  (a field of each datagram class, never of the base)
    return found


def faults_of(packet: TaggedPacket) -> tuple[Fault, ...]:
    """What is wrong with a datagram."""
    found: tuple[Fault, ...] = getattr(packet, "faults")  # noqa: B009
    return found


def count_unknown_tags(tags: tuple[Tag, ...], faults: tuple[Fault, ...]) -> int:
    """Tags without a name, except those that a fault already speaks of."""
    nameless = sum(isinstance(tag, UnknownTag) and tag.number is not None for tag in tags)
    return nameless - sum(fault.code == "bad_tag_payload" for fault in faults)


P = TypeVar("P", bound=TaggedPacket)


class UdpProtocol(Generic[P]):
    """Codec of one direction."""

    def __init__(self, name: str, packet_name: str, packet_class: type[P], table: TagTable) -> None:
        self.name = name
        self.packet_name = packet_name
        self.packet_class = packet_class
        self.table = table
        self._header = PacketCodec(packet_class)

    def decode(self, data: bytes, *, strict: bool = False) -> P:
        """The datagram; TruncatedError for less than a header, and if ``strict`` the error of the first fault."""
        data = bytes(data)
        if len(data) == self._header.size:
            return self._header.decode(data)
        header = self._header.decode_from
        if len(data) < self._header.size:
            return header(data, 0)
        tags, faults = self._tags(data, self._header.size)
        if strict and faults:
            raise faults[0].error()
        return header(data, 0, tags, faults)

    def _tags(self, data: bytes, at: int) -> tuple[tuple[Tag, ...], tuple[Fault, ...]]:
        tags: list[Tag] = []
        faults: list[Fault] = []
        total = len(data)
        while at < total:
            end = at + 1 + data[at]
            if end > total:
                number = data[at + 1] if at + 1 < total else None
                faults.append(Fault("tag_overrun", at, number, end - at, total - at))
                break
            if end == at + 1:
                faults.append(Fault("zero_size_tag", at, None))
                tags.append(UnknownTag(None, b""))
            else:
                tags.append(self._tag(data[at + 1], data[at + 2 : end], at, faults))
            at = end
        return tuple(tags), tuple(faults)

    def _tag(self, number: int, data: bytes, at: int, faults: list[Fault]) -> Tag:
        try:
            tag = self.table.decode(number, data)
        except DecodeError:
            faults.append(Fault("bad_tag_payload", at, number))
            tag = None
        return UnknownTag(number, data) if tag is None else tag

    def encode(self, packet: P) -> bytes:
        """The datagram; EncodeError names the field that does not fit."""
        if not isinstance(packet, self.packet_class):
            raise EncodeError(f"{type(packet).__name__} is not the packet of {self.name}")
        tags = [self.table.encode(tag, f"tags[{index}]") for index, tag in enumerate(tags_of(packet))]
        data = self._header.encode(packet) + b"".join(tags)
        if len(data) > MAX_DATAGRAM:
            raise EncodeError(f"tags: a datagram of {len(data)} bytes, at most {MAX_DATAGRAM} fit", "tags")
        return data

    def to_fields(self, packet: P) -> dict[str, Any]:
        """JSON form."""
        fields = self._header.to_fields(packet)
        fields["tags"] = [self.table.to_fields(tag) for tag in tags_of(packet)]
        return fields

    def from_fields(self, fields: Any) -> P:
        """Inverse of ``to_fields``."""
        if not isinstance(fields, dict):
            raise EncodeError(f"fields: object expected, got {fields!r:.40}", "fields")
        tags = fields.get("tags", [])
        if not isinstance(tags, list | tuple):
            raise EncodeError(f"tags: list expected, got {tags!r:.40}", "tags")
        read = tuple(self.table.from_fields(tag, f"tags[{index}]") for index, tag in enumerate(tags))
        return self._header.from_fields(fields, read, ignored=("tags",))
