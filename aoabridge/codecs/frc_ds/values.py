"""Texts and single floats that keep every bit of the wire."""

import struct
from typing import Self, TypeAlias

from aoabridge.codecs.wire import Wire, WireInt
from aoabridge.errors import EncodeError

__all__ = ["SINGLE", "Single", "TextValue", "hex_octets", "text_from_json", "text_octets", "text_of", "text_to_json"]

TextValue: TypeAlias = str | bytes
"""A text; the bytes themselves if they are not UTF-8."""


class Single(WireInt):
    """An IEEE binary32 as its 32 bits, so that every NaN survives; ``value`` is the exact double."""

    __slots__ = ()

    @classmethod
    def of(cls, value: float, path: str = "value") -> Self:
        """The nearest binary32; EncodeError for NaN, infinities and what would become one."""
        try:
            single = cls.from_bytes(struct.pack(">f", value))
        except (OverflowError, struct.error) as error:
            raise EncodeError(f"{path}: {value!r:.40} is no binary32: {error}", path) from None
        if not single.is_finite:
            raise EncodeError(f"{path}: {value} only travels as f32_bits", path)
        return single

    @property
    def value(self) -> float:
        """The number, possibly NaN or infinite."""
        number: float = struct.unpack(">f", self.to_bytes(4))[0]
        return number

    @property
    def is_finite(self) -> bool:
        """False for NaN and infinities."""
        return self & 0x7F800000 != 0x7F800000

    def to_fields(self) -> object:
        """The number, or ``{"f32_bits": "8 hex digits"}`` if it is not finite."""
        return self.value if self.is_finite else {"f32_bits": f"{int(self):08x}"}

    @classmethod
    def from_fields(cls, value: object, path: str) -> Self:
        """Inverse of ``to_fields``."""
        if isinstance(value, dict):
            bits = value.get("f32_bits")
            if set(value) != {"f32_bits"} or not isinstance(bits, str) or len(bits) != 8:
                raise EncodeError(f"{path}: f32_bits of 8 hex digits expected", path)
            return cls(int.from_bytes(hex_octets(bits, path)))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise EncodeError(f"{path}: number expected, got {value!r:.40}", path)
        return cls.of(value, path)


SINGLE = Wire("I")


def hex_octets(value: object, path: str) -> bytes:
    """The octets behind a JSON text of hex digits."""
    try:
        if isinstance(value, str):
            return bytes.fromhex(value)
    except ValueError:
        pass
    raise EncodeError(f"{path}: hex digits expected, got {value!r:.40}", path)


def text_of(data: bytes) -> TextValue:
    """The text, or the bytes themselves if they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def text_to_json(value: TextValue) -> object:
    """The text, or ``{"raw_hex": …}``."""
    return value if isinstance(value, str) else {"raw_hex": value.hex()}


def text_from_json(value: object, path: str) -> TextValue:
    """Inverse of ``text_to_json``."""
    if isinstance(value, dict) and set(value) == {"raw_hex"}:
        return text_of(hex_octets(value["raw_hex"], f"{path}.raw_hex"))
    if not isinstance(value, str):
        raise EncodeError(f"{path}: text expected, got {value!r:.40}", path)
    return value


def text_octets(value: object, path: str) -> bytes:
    """The octets of a text value."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise EncodeError(f"{path}: text expected, got {value!r:.40}", path)
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise EncodeError(f"{path}: the text holds a lone surrogate", path) from None
