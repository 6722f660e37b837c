"""Where each key and value of a TOML text stands, since tomllib tells positions of syntax errors only."""

import re
from typing import TypeAlias

import msgspec

__all__ = ["KeyPath", "Place", "line_column", "locate"]

KeyPath: TypeAlias = tuple[str | int, ...]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}


class Place(msgspec.Struct, frozen=True):
    """Character offsets of a key and of its value; for an element of an array both are the element's."""

    key: int
    value: int


class _Scanner:
    """Walks a text that tomllib has accepted, so no error has to be found here."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places: dict[KeyPath, Place] = {}
        self.elements: dict[KeyPath, int] = {}

    def document(self) -> None:
        """Take every table header and every key of the text."""
        table: KeyPath = ()
        self.skip()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip()

    def header(self) -> KeyPath:
        """``[a.b]`` or ``[[a.b]]``; the path below which the next keys stand."""
        start = self.at
        several = self.text.startswith("[[", self.at)
        self.at += 2 if several else 1
        names = self.key()
        self.at = self.text.index("]", self.at) + (2 if several else 1)
        path: KeyPath = ()
        for position, name in enumerate(names):
            path = (*path, name)
            if several and position == len(names) - 1:
                self.places.setdefault(path, Place(start, start))
                self.elements[path] = self.elements.get(path, -1) + 1
            if path in self.elements:
                path = (*path, self.elements[path])
        self.places.setdefault(path, Place(start, start))
        return path

    def pair(self, table: KeyPath) -> None:
        """``key = value`` below a table."""
        start = self.at
        names = self.key()
        self.at = self.text.index("=", self.at) + 1
        self.skip()
        for depth in range(1, len(names)):
            self.places.setdefault((*table, *names[:depth]), Place(start, self.at))
        self.value((*table, *names), start)

    def value(self, path: KeyPath, key_at: int) -> None:
        """Note one value and what it holds."""
        self.places[path] = Place(key_at, self.at)
        opening = self.text[self.at]
        if opening == "[":
            self.collection(path, "]")
        elif opening == "{":
            self.collection(path, "}")
        else:
            match = _STRING.match(self.text, self.at) or _SCALAR.match(self.text, self.at)
            self.at = match.end() if match else len(self.text)

    def collection(self, path: KeyPath, closing: str) -> None:
        """The elements of an array or the pairs of an inline table."""
        self.at += 1
        index = 0
        self.skip()
        while self.text[self.at] != closing:
            if closing == "}":
                self.pair(path)
            else:
                self.value((*path, index), self.at)
                index += 1
            self.skip()
            if self.text[self.at] == ",":
                self.at += 1
                self.skip()
        self.at += 1

    def key(self) -> tuple[str, ...]:
        """A dotted key, of bare and quoted parts."""
        names: list[str] = []
        while True:
            self.skip()
            if (match := _BARE.match(self.text, self.at)) is not None:
                names.append(match[0])
            elif (match := _STRING.match(self.text, self.at)) is not None:
                inner = match[0][1:-1]
                names.append(inner if match[0][0] == "'" else _ESCAPE.sub(_unescape, inner))
            else:
                return tuple(names)
            self.at = match.end()
            self.skip()
            if self.at >= len(self.text) or self.text[self.at] != ".":
                return tuple(names)
            self.at += 1

    def skip(self) -> None:
        """Pass blanks, line ends and comments."""
        if (match := _SPACE.match(self.text, self.at)) is not None:
            self.at = match.end()


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if code[0] in "uU" else _ESCAPES.get(code, code)


def locate(text: str) -> dict[KeyPath, Place]:
    """The place of every table, key and array element of a TOML text that tomllib accepts."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.places


def line_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column of a character offset, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1
