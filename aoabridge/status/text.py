"""Texts from outside, made harmless: no control characters, no direction overrides, bounded length."""

import unicodedata

__all__ = ["MAX_SHOWN", "clipped", "printable"]

MAX_SHOWN = 200  # characters of any foreign text in a line of output

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, limit: int | None = None) -> str:
    """The text with every control, format and lone surrogate character escaped as \\x, \\u or \\U."""
    shown = text if text.isascii() and text.isprintable() else "".join(_escaped(character) for character in text)
    return shown if limit is None else clipped(shown, limit)


def clipped(text: str, limit: int) -> str:
    """At most ``limit`` characters, the last one an ellipsis if something was cut."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return character
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
