"""Names of struct types as NetworkTables writes them."""

from collections.abc import Sequence

from aoabridge.errors import SchemaError

__all__ = ["STRUCT_PREFIX", "checked_name", "listed", "schema_topic_type", "split_type_string"]

STRUCT_PREFIX = "struct:"
_SCHEMA_PART = "/.schema/struct:"
_LISTED_CHARS = 1_000  # of names in one message, whatever a network peer calls its types
_FIRST_PRINTABLE, _DELETE = " ", "\x7f"


def split_type_string(type_string: str) -> tuple[str, bool] | None:
    """Split ``struct:Name`` or ``struct:Name[]`` into the name and whether it is an array; None for other types."""
    if not type_string.startswith(STRUCT_PREFIX):
        return None
    name = type_string.removeprefix(STRUCT_PREFIX)
    return name.removesuffix("[]"), name.endswith("[]")


def schema_topic_type(topic: str) -> tuple[str, bool] | None:
    """Return the type that a ``…/.schema/struct:Name`` topic describes, and whether it stands under the plain root.

    A schema under the plain root wins over one under a prefix. None for any other topic.
    """
    prefix, part, name = topic.rpartition(_SCHEMA_PART)
    return (name, not prefix) if part and name else None


def checked_name(type_name: str, limit_bytes: int) -> str:
    """Strip one leading ``struct:`` and return the name; SchemaError if it cannot name a type."""
    name = type_name.removeprefix(STRUCT_PREFIX)
    try:
        length = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        raise SchemaError("the type name holds a lone surrogate", "encoding") from None
    if not 1 <= length <= limit_bytes:
        raise SchemaError(f"a type name has 1 to {limit_bytes} bytes, not {length}", "limit_name")
    if any(character < _FIRST_PRINTABLE or character == _DELETE for character in name):
        raise SchemaError("the type name holds a control character", "syntax", name)
    return name


def listed(names: Sequence[str], separator: str = ", ") -> str:
    """Join names for a message, as many as it can hold."""
    length = 0
    for index, name in enumerate(names):
        length += len(name) + len(separator)
        if index and length > _LISTED_CHARS:
            return f"{separator.join(names[:index])} and {len(names) - index} more"
    return separator.join(names)
