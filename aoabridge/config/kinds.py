"""What a key of the configuration may hold: one small class per kind of value.

``check`` returns the value in the form that the settings classes hold (tuples for lists, floats for numbers with a
fraction) or a ``Fault``. It never raises and never corrects a value.
"""

import ipaddress
import math
import re
from collections.abc import Callable
from typing import Protocol, TypeAlias

import msgspec

from aoabridge.codecs.host_port import split_host_port
from aoabridge.errors import DecodeError

__all__ = [
    "Address",
    "AnyOf",
    "Bool",
    "Choice",
    "Fault",
    "Float",
    "Int",
    "Kind",
    "ListOf",
    "MapOf",
    "Optional",
    "Text",
    "host_port",
    "network",
]


class Fault(msgspec.Struct, frozen=True):
    """Why a value is refused; ``at`` leads to the offending element inside it."""

    message: str
    hint: str | None = None
    at: tuple[str | int, ...] = ()


Checked: TypeAlias = object


class Kind(Protocol):
    """Decides about one value as tomllib returns it."""

    def check(self, value: object) -> Checked | Fault:
        """The value as the settings class holds it, or the fault."""


def shown(value: object) -> str:
    """A value as a person would write it in TOML, cut to 40 characters."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str):
        text = '"' + value.encode("unicode_escape").decode("ascii") + '"'
    elif isinstance(value, dict):
        return "a table"
    elif isinstance(value, list):
        return "a list"
    else:
        text = str(value)
    return text if len(text) <= 40 else text[:37] + "..."


class Bool(msgspec.Struct, frozen=True):
    """true or false."""

    def check(self, value: object) -> Checked | Fault:
        """A bool; nothing else stands for one."""
        if isinstance(value, bool):
            return value
        return Fault(f"{shown(value)} is not true or false")


class Int(msgspec.Struct, frozen=True):
    """An integer within bounds; a bool is none."""

    low: int
    high: int

    def check(self, value: object) -> Checked | Fault:
        """An int from low to high."""
        if not isinstance(value, int) or isinstance(value, bool):
            hint = "write the number without quotes" if _numeric(value) else None
            return Fault(f"{shown(value)} is not an integer", hint)
        if not self.low <= value <= self.high:
            return Fault(f"{value} is not in {self.low}..{self.high}")
        return value


class Float(msgspec.Struct, frozen=True):
    """A finite number within bounds; integers are accepted."""

    low: float
    high: float
    zero: bool = True

    def check(self, value: object) -> Checked | Fault:
        """A float from low to high; ``zero`` false refuses 0."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            hint = "write the number without quotes" if _numeric(value) else None
            return Fault(f"{shown(value)} is not a number", hint)
        if not math.isfinite(value) or not self.low <= value <= self.high:
            return Fault(f"{value} is not in {self.low:g}..{self.high:g}")
        if value == 0 and not self.zero:
            return Fault("0 is not allowed")
        return float(value)


class Text(msgspec.Struct, frozen=True):
    """A string without control characters, up to ``max_bytes`` of UTF-8; ``form`` says the pattern in words."""

    max_bytes: int = 4096
    pattern: str | None = None
    form: str = ""
    accepts: Callable[[str], str | None] | None = None
    """Returns what is wrong with a text, None if nothing."""

    def check(self, value: object) -> Checked | Fault:
        """A str."""
        if not isinstance(value, str):
            return Fault(f"{shown(value)} is not a text", "write it in quotes" if _plain(value) else None)
        if len(value.encode("utf-8", "surrogatepass")) > self.max_bytes:
            return Fault(f"{shown(value)} is longer than {self.max_bytes} bytes")
        if any(ord(character) < 0x20 or ord(character) == 0x7F for character in value):
            return Fault(f"{shown(value)} holds control characters")
        if self.pattern is not None and re.fullmatch(self.pattern, value) is None:
            return Fault(f"{shown(value)} is not {self.form}")
        if self.accepts is not None and (wrong := self.accepts(value)) is not None:
            return Fault(f"{shown(value)} {wrong}")
        return value


class Choice(msgspec.Struct, frozen=True):
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, value: object) -> Checked | Fault:
        """One of the words."""
        if isinstance(value, str) and value in self.words:
            return value
        return Fault(f"{shown(value)} is not one of {', '.join(self.words)}")


class Optional(msgspec.Struct, frozen=True):
    """A key whose absence (None) means something: TOML cannot say None, so any value is one of ``kind``."""

    kind: Kind

    def check(self, value: object) -> Checked | Fault:
        """As the kind inside."""
        return self.kind.check(value)


class ListOf(msgspec.Struct, frozen=True):
    """A list of one kind, at most ``limit`` long; becomes a tuple."""

    kind: Kind
    limit: int
    unique: bool = False

    def check(self, value: object) -> Checked | Fault:
        """A tuple; the first bad element decides."""
        if not isinstance(value, list):
            return Fault(f"{shown(value)} is not a list", "write it in brackets: [...]")
        if len(value) > self.limit:
            return Fault(f"{len(value)} entries, the limit is {self.limit}")
        items: list[object] = []
        for index, element in enumerate(value):
            item = self.kind.check(element)
            if isinstance(item, Fault):
                return Fault(item.message, item.hint, (index, *item.at))
            if self.unique and item in items:
                return Fault(f"{shown(element)} stands here twice", at=(index,))
            items.append(item)
        return tuple(items)


class MapOf(msgspec.Struct, frozen=True):
    """A table with free keys; stays a dict."""

    key: Kind
    kind: Kind
    limit: int
    names: tuple[str, ...] = ()
    """The only keys allowed, if there are any."""

    def check(self, value: object) -> Checked | Fault:
        """A dict; the first bad entry decides."""
        if not isinstance(value, dict):
            return Fault(f"{shown(value)} is not a table", "write it in braces: { key = value }")
        if len(value) > self.limit:
            return Fault(f"{len(value)} entries, the limit is {self.limit}")
        items: dict[str, object] = {}
        for name, element in value.items():
            if self.names and name not in self.names:
                return Fault(f"unknown key {shown(name)}", f"known: {', '.join(self.names)}", (name,))
            if isinstance(fault := self.key.check(name), Fault):
                return Fault(fault.message, fault.hint, (name, *fault.at))
            item = self.kind.check(element)
            if isinstance(item, Fault):
                return Fault(item.message, item.hint, (name, *item.at))
            items[name] = item
        return items


class AnyOf(msgspec.Struct, frozen=True):
    """One of several kinds; ``form`` names them all in words."""

    kinds: tuple[tuple[type, Kind], ...]
    """Python type of the TOML value and the kind that then decides."""
    form: str

    def check(self, value: object) -> Checked | Fault:
        """By the first kind whose type fits."""
        for accepted, kind in self.kinds:
            if isinstance(value, accepted) and not isinstance(value, bool):
                return kind.check(value)
        return Fault(f"{shown(value)} is not {self.form}")


class Address(msgspec.Struct, frozen=True):
    """A numeric IPv4 or IPv6 address to bind to."""

    def check(self, value: object) -> Checked | Fault:
        """The text of the address."""
        if not isinstance(value, str):
            return Fault(f"{shown(value)} is not an address", "write it in quotes" if _plain(value) else None)
        try:
            ipaddress.ip_address(value)
        except ValueError:
            return Fault(f"{shown(value)} is not an IP address")
        return value


def network(text: str) -> str | None:
    """What is wrong with an address or CIDR network; None if nothing."""
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        if "host bits" in str(error):
            return f"has host bits set: the network is {ipaddress.ip_network(text, strict=False)}"
        return "is not an address or network such as 10.0.0.0/8"
    return None


def host_port(text: str) -> tuple[str, int] | None:
    """Splits ``host:port`` or ``[v6]:port``; None if it is neither."""
    try:
        host, port = split_host_port(text)
    except DecodeError:
        return None
    return (host, port) if re.fullmatch(r"[0-9A-Fa-f:.]+|[A-Za-z0-9._-]+", host) else None


def _numeric(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", value) is not None


def _plain(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
