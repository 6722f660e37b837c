"""Stream Motion packets as JSON fields: every float ``x`` has a twin ``x_bits`` that keeps it to the last bit.

Finite floats are numbers, others ``"nan"``, ``"inf"``, ``"-inf"``; bits are lower-case hex of the IEEE word in
big-endian notation whatever the order on the wire. Octet fields are ``<name>_hex``. ``version_response`` has
``extra_hex`` only if there are further octets.
"""

import math
import re
import struct
from collections.abc import Mapping
from typing import Any

import msgspec

from aoabridge.codecs.fields import Field, from_json, to_json
from aoabridge.codecs.j519.dispatch import NAMES, PACKETS, Codec, codec_of, exact_bytes
from aoabridge.codecs.j519.packets import J519Packet, VersionResponse
from aoabridge.errors import EncodeError

__all__ = ["from_fields", "to_fields"]

_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_BITS = {"f": re.compile("[0-9a-fA-F]{8}"), "d": re.compile("[0-9a-fA-F]{16}")}


def to_fields(packet: J519Packet) -> dict[str, Any]:
    """All fields in wire order; EncodeError if a field of a packet that was built does not fit the wire."""
    data = exact_bytes(packet)
    fields: dict[str, Any] = {}
    for field in codec_of(type(packet)).fields:
        if field.is_float:
            fields[field.name], fields[f"{field.name}_bits"] = _float_twins(field, getattr(packet, field.name), data)
        elif field.constant is not None:
            fields[field.name] = field.constant
        else:
            fields[field.key] = to_json(field, getattr(packet, field.name))
    if isinstance(packet, VersionResponse) and packet.extra:
        fields["extra_hex"] = packet.extra.hex()
    return fields


def _float_twins(field: Field, value: Any, data: bytes) -> tuple[Any, Any]:
    digits = data[field.offset : field.offset + field.size].hex(" ", struct.calcsize(field.wire.format))
    if not field.wire.count:
        return _number(value), digits
    numbers = list(value) if math.isfinite(sum(value)) else [_number(one) for one in value]
    return numbers, digits.split(" ")


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")


def from_fields(protocol: str, packet_name: str, fields: Mapping[str, Any]) -> J519Packet:
    """Inverse of ``to_fields``; floats may come as numbers, as bits, or as both if they agree.

    EncodeError for a name that this direction does not have, a missing or unknown key, a wrong type, a contradiction.
    ValueError for an unknown protocol id. Ranges of integers are judged by ``encode``.
    """
    if protocol not in PACKETS:
        raise ValueError(f"unknown protocol {protocol!r}")
    packet_class = next((kls for kls in PACKETS[protocol].values() if NAMES[kls] == packet_name), None)
    if packet_class is None:
        raise EncodeError(f"packet: {packet_name!r:.40} is unknown in {protocol}", "packet")
    if not isinstance(fields, Mapping):
        raise EncodeError(f"fields: object expected, got {fields!r:.40}", "fields")
    codec = codec_of(packet_class)
    _refuse_unknown_keys(codec, fields)
    values: list[Any] = []
    words: dict[int, bytes] = {}  # offset -> bits of every NaN that came as bits
    for field in codec.fields:
        value = _floats(field, fields, words) if field.is_float else from_json(field, fields, "")
        if field.constant is None:
            values.append(value)
    if packet_class is VersionResponse:
        values.append(_extra(fields))
    packet = packet_class(*values)
    return _with_words(codec, packet, words) if words else packet


def _refuse_unknown_keys(codec: Codec, fields: Mapping[str, Any]) -> None:
    known = {field.key for field in codec.fields} | {f"{field.name}_bits" for field in codec.fields if field.is_float}
    if codec.packet_class is VersionResponse:
        known.add("extra_hex")
    unknown = {str(key) for key in fields if key not in known}
    if unknown:
        raise EncodeError(f"{min(unknown)}: no such field in {NAMES[codec.packet_class]}", min(unknown))


def _extra(fields: Mapping[str, Any]) -> bytes:
    text = fields.get("extra_hex", "")
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        raise EncodeError("extra_hex: hex digits expected", "extra_hex") from None


def _floats(field: Field, fields: Mapping[str, Any], words: dict[int, bytes]) -> Any:
    numbers, bits = fields.get(field.name), fields.get(f"{field.name}_bits")
    if numbers is None and bits is None:
        raise EncodeError(f"{field.name}: missing, and no {field.name}_bits either", field.name)
    count = field.slots
    if not field.wire.count:
        return _float((numbers, bits), field.wire.format, field.name, words, field.offset)
    pairs = zip(_elements(numbers, count, field.name), _elements(bits, count, f"{field.name}_bits"), strict=True)
    size = field.size // count
    return tuple(
        _float(pair, field.wire.format, f"{field.name}[{i}]", words, field.offset + i * size)
        for i, pair in enumerate(pairs)
    )


def _elements(values: Any, count: int, path: str) -> list[Any]:
    if values is None:
        return [None] * count
    if not isinstance(values, list | tuple):
        raise EncodeError(f"{path}: list expected, got {values!r:.40}", path)
    if len(values) != count:
        raise EncodeError(f"{path}: {count} values expected, got {len(values)}", path)
    return list(values)


def _float(pair: tuple[Any, Any], code: str, path: str, words: dict[int, bytes], offset: int) -> float:
    """One float out of its number, its bits or both; a NaN's bits are noted in ``words`` at ``offset``."""
    number, bits = pair
    value = None if number is None else _from_number(number, path)
    if bits is None:
        if value is None:
            raise EncodeError(f"{path}: neither a number nor bits", path)
        return value
    if not isinstance(bits, str) or not _BITS[code].fullmatch(bits):
        raise EncodeError(f"{path}: {struct.calcsize(code) * 2} hex digits expected, got {bits!r:.40}", path)
    word = bytes.fromhex(bits)
    exact: float = struct.unpack(f">{code}", word)[0]
    if value is not None and not _agree(value, exact, code):
        raise EncodeError(f"{path}: {number} and bits {bits} contradict each other", path)
    if math.isnan(exact):
        words[offset] = word
    return exact


def _from_number(number: Any, path: str) -> float:
    if isinstance(number, str) and number in _SPECIAL:
        return _SPECIAL[number]
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise EncodeError(f"{path}: number, nan, inf or -inf expected, got {number!r:.40}", path)
    try:
        return float(number)
    except OverflowError:
        raise EncodeError(f"{path}: {number!r:.40} is too large", path) from None


def _agree(value: float, exact: float, code: str) -> bool:
    """True if both stand for the same word; any NaN agrees with any other."""
    if math.isnan(value) or math.isnan(exact):
        return math.isnan(value) and math.isnan(exact)
    try:
        return struct.pack(f">{code}", value) == struct.pack(f">{code}", exact)
    except OverflowError:
        return False


def _with_words(codec: Codec, packet: J519Packet, words: Mapping[int, bytes]) -> J519Packet:
    """The packet with a datagram behind it that holds the exact bits of its NaNs."""
    data = bytearray(codec.encode(packet))
    for offset, word in words.items():
        data[offset : offset + len(word)] = word
    return msgspec.structs.replace(packet, raw=bytes(data))
