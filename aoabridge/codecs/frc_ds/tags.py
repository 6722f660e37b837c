"""Tags of UDP datagrams and frames of TCP streams: (size, id, payload), with every fault kept beside what is good.

UDP: ``size:u8 id:u8 data[size-1]``; TCP: ``size:u16 id:u8 data[size-1]``. The size counts id and data, not itself.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import msgspec

from aoabridge.codecs.frc_ds.parts import Codec
from aoabridge.codecs.frc_ds.payload import compile_codec
from aoabridge.codecs.frc_ds.values import hex_octets
from aoabridge.codecs.packets import Packet
from aoabridge.codecs.wire import expect_int
from aoabridge.errors import DecodeError, EncodeError, TruncatedError

__all__ = ["TCP_MAX_DATA", "UDP_MAX_DATA", "Fault", "Keepalive", "Tag", "TagTable", "UnknownTag"]

UDP_MAX_DATA = 254  # the size is one octet and counts the id
TCP_MAX_DATA = 65_534  # the size is two octets and counts the id

_IDENTITY = frozenset({"id", "size", "name"})


class Fault(msgspec.Struct, frozen=True, gc=False):
    """What is wrong with one tag or frame.

    ``offset`` of its size field; ``tag`` = its id if that octet is there; ``need`` and ``have``: octets of the whole
    element and octets present, for a length fault, else None.
    """

    code: str
    offset: int
    tag: int | None
    need: int | None = None
    have: int | None = None

    def error(self) -> DecodeError:
        """The error that strict decoding raises."""
        if self.need is None or self.have is None:
            return DecodeError(f"{self.code} at {self.offset}", self.offset)
        end, needed = self.offset + self.have, self.offset + self.need
        return TruncatedError(
            f"{self.code} at {self.offset}: {self.have} of {self.need} bytes", needed=needed, got=end, offset=end
        )


class Tag(Packet, frozen=True):
    """A decoded tag or frame; ``id`` and ``name`` belong to the class, attributes are the keys of its JSON."""

    ID: ClassVar[int | None] = None
    NAME: ClassVar[str | None] = None

    @property
    def id(self) -> int | None:
        """Number on the wire."""
        return self.ID

    @property
    def name(self) -> str | None:
        """Name of the tables, None if no table knows it."""
        return self.NAME


class UnknownTag(Tag, frozen=True):
    """An id that the table does not know, or a known one whose payload is not what it should be.

    ``number`` None is the UDP tag of size 0.
    """

    number: int | None
    data: bytes

    @property
    def id(self) -> int | None:
        """Number on the wire."""
        return self.number

    @property
    def raw_hex(self) -> str:
        """The payload."""
        return self.data.hex()


class Keepalive(Tag, frozen=True):
    """The TCP frame of size 0: two zero octets and no id."""

    NAME = "keepalive"


class TagTable:
    """The tags of one protocol: what each id means, and how to read and write it."""

    def __init__(
        self, *tag_classes: type[Tag], codecs: Mapping[type[Tag], Codec] | None = None, stream: bool = False
    ) -> None:
        """``codecs`` are those that cannot be told from the annotations; ``stream``: frames of a TCP stream."""
        special = codecs or {}
        self.stream = stream
        self.max_data = TCP_MAX_DATA if stream else UDP_MAX_DATA
        self.classes: dict[int, type[Tag]] = {cast(int, cls.ID): cls for cls in tag_classes}
        self.ids = {cls.NAME: number for number, cls in self.classes.items()}
        self._codecs = {number: special.get(cls) or compile_codec(cls) for number, cls in self.classes.items()}

    def decode(self, number: int, data: bytes) -> Tag | None:
        """The tag; None if the id is unknown. DecodeError: a payload that is not this tag's."""
        codec = self._codecs.get(number)
        return None if codec is None else cast(Tag, codec.decode(data))

    def payload(self, tag: Tag, path: str) -> bytes:
        """The octets behind the id; ``path`` is the place in the packet (``tags[0]``)."""
        if isinstance(tag, UnknownTag):
            return tag.data
        if tag.ID is None or self.classes.get(tag.ID) is not type(tag):
            raise EncodeError(f"{path}: {type(tag).__name__} is no tag of this protocol", path)
        return self._codecs[tag.ID].write(tag, f"{path}.")

    def encode(self, tag: Tag, path: str) -> bytes:
        """The whole element; EncodeError for a UDP tag of size 0 and for more data than a size can tell."""
        if self.stream and isinstance(tag, Keepalive):
            return bytes(2)
        if tag.id is None:
            raise EncodeError(f"{path}: a tag of size 0 is never sent", path)
        data = self.payload(tag, path)
        if len(data) > self.max_data:
            raise EncodeError(f"{path}: {len(data)} bytes of data, at most {self.max_data} fit", path)
        return (len(data) + 1).to_bytes(2 if self.stream else 1) + bytes([tag.id]) + data

    def to_fields(self, tag: Tag) -> dict[str, Any]:
        """JSON form with ``id``, ``size``, ``name``."""
        if isinstance(tag, Keepalive):
            return {"id": None, "size": 0, "name": tag.NAME}
        if isinstance(tag, UnknownTag):
            size = 0 if tag.number is None else 1 + len(tag.data)
            return {"id": tag.number, "size": size, "name": None, "raw_hex": tag.raw_hex}
        codec = self._codecs[cast(int, tag.ID)]
        head = {"id": tag.ID, "size": 1 + len(codec.write(tag)), "name": tag.NAME}
        return head | codec.to_fields(tag)

    def from_fields(self, fields: Any, path: str) -> Tag:
        """Inverse of ``to_fields``: ``id`` or ``name`` says which tag, both must agree; ``size`` is passed over."""
        if not isinstance(fields, Mapping):
            raise EncodeError(f"{path}: object expected, got {fields!r:.40}", path)
        number, name = fields.get("id"), fields.get("name")
        if number is not None and not 0 <= expect_int(number, f"{path}.id") <= 0xFF:
            raise EncodeError(f"{path}.id: {number} is not in 0..255", f"{path}.id")
        rest = {key: value for key, value in fields.items() if key not in _IDENTITY}
        if name is None and ("name" in fields or number not in self.classes or rest.keys() == {"raw_hex"}):
            return _unknown_from_fields(number, rest, path)
        if self.stream and name == Keepalive.NAME:
            return _keepalive_from_fields(number, rest, path)
        if name is not None and (not isinstance(name, str) or name not in self.ids):
            raise EncodeError(f"{path}.name: no tag {name!r:.40} in this protocol", f"{path}.name")
        own = self.ids[name] if number is None else number
        if name is not None and self.ids[name] != own:
            raise EncodeError(f"{path}.name: {name} is id {self.ids[name]}, not {own}", f"{path}.name")
        return cast(Tag, self._codecs[own].from_fields(rest, f"{path}."))


def _unknown_from_fields(number: int | None, rest: dict[str, Any], path: str) -> UnknownTag:
    if number is None:
        raise EncodeError(f"{path}.id: a tag needs an id or a name", f"{path}.id")
    for key in rest.keys() - {"raw_hex"}:
        raise EncodeError(f"{path}.{key}: no such field in a tag without name", f"{path}.{key}")
    return UnknownTag(number, hex_octets(rest.get("raw_hex"), f"{path}.raw_hex"))


def _keepalive_from_fields(number: int | None, rest: dict[str, Any], path: str) -> Keepalive:
    if number is not None:
        raise EncodeError(f"{path}.id: a keepalive has none", f"{path}.id")
    for key in rest:
        raise EncodeError(f"{path}.{key}: a keepalive carries nothing", f"{path}.{key}")
    return Keepalive()
