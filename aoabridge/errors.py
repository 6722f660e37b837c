"""Every exception that input from outside can raise.

A wrong call (unknown protocol id, bad argument) is a plain ``ValueError``; everything that a wire, a file or a device
can cause is one of these.
"""

__all__ = [
    "BridgeError",
    "ConfigError",
    "DecodeError",
    "EncodeError",
    "LinkError",
    "SchemaError",
    "TruncatedError",
    "UnknownPacketError",
    "UsbError",
]


class BridgeError(Exception):
    """Root of the tree."""


class DecodeError(BridgeError, ValueError):
    """Bytes that are not what their protocol allows; ``offset`` is the byte where it shows, None if there is none."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class TruncatedError(DecodeError):
    """Input that ends too early: ``needed`` bytes were required, ``got`` were there."""

    def __init__(self, message: str, *, needed: int, got: int, offset: int | None = None) -> None:
        super().__init__(message, offset)
        self.needed = needed
        self.got = got


class UnknownPacketError(DecodeError):
    """A well-formed frame whose ``kind`` (type code, length, magic) no table knows."""

    def __init__(self, message: str, kind: object, offset: int | None = None) -> None:
        super().__init__(message, offset)
        self.kind = kind


class EncodeError(BridgeError, ValueError):
    """A value that the wire cannot carry; ``field`` is its dotted path, None if there is none.

    ``codes`` name the rules that a packet breaks where a guard judges it (Stream Motion).
    """

    def __init__(self, message: str, field: str | None = None, codes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.field = field
        self.codes = codes


class SchemaError(BridgeError, ValueError):
    """A struct schema that cannot be used; ``position`` is a byte offset in its UTF-8 text or None."""

    def __init__(self, message: str, code: str, type_name: str | None = None, position: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.type_name = type_name
        self.position = position


class LinkError(BridgeError):
    """A phone's message that is refused; ``code`` is the one the phone is told, ``topic`` the key it is about."""

    def __init__(self, message: str, code: str, topic: str | None = None, ident: int | str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.topic = topic
        self.ident = ident


class UsbError(BridgeError, OSError):
    """A failed USB call: ``kind`` is libusb's name for it, ``step`` what was tried, ``port`` where."""

    def __init__(self, message: str, *, errno: int | None, kind: str, step: str, port: str) -> None:
        super().__init__(errno, message)
        self.kind = kind
        self.step = step
        self.port = port


class ConfigError(BridgeError, ValueError):
    """One fault of a configuration file, at ``file``:``line``:``column``; ``key`` is the full key path."""

    def __init__(
        self,
        message: str,
        *,
        key: str | None = None,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.key = key
        self.file = file
        self.line = line
        self.column = column
        self.hint = hint
