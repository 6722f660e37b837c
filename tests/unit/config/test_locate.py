"""Positions of keys and values, in every way TOML can write them."""

import tomllib
from typing import Any

import pytest

from aoabridge.config.locate import KeyPath, line_column, locate

TEXT = '''# comment = 1
a = 1
"b.c" . d = 'x'   # tail
[t.u]   # header
list = [ 1, # one ]
  "]", [2, 3],
]
inline = { x = { y = "}" }, "q\\"r" = """many
lines = 5""" }
[[t.many]]
k = \'\'\'
no = 1
\'\'\'
[[t.many]]
k.l = 2026-01-01T00:00:00Z
[t.many.sub]
z = -inf
'''


def walk(value: Any, path: KeyPath = ()) -> list[tuple[KeyPath, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(path, value)] + [pair for key, item in items for pair in walk(item, (*path, key))]


def test_every_key_and_element_has_a_place() -> None:
    places = locate(TEXT)
    assert [path for path, _ in walk(tomllib.loads(TEXT)) if path and path not in places and path != ("t",)] == []


@pytest.mark.parametrize(
    ("path", "value_at"),
    [
        (("a",), (2, 5)),
        (("b.c", "d"), (3, 13)),
        (("t", "u", "list", 0), (5, 10)),
        (("t", "u", "list", 1), (6, 3)),
        (("t", "u", "list", 2, 1), (6, 12)),
        (("t", "u", "inline", "x", "y"), (8, 22)),
        (("t", "u", "inline", 'q"r'), (8, 38)),
        (("t", "many", 0, "k"), (11, 5)),
        (("t", "many", 1), (14, 1)),
        (("t", "many", 1, "k", "l"), (15, 7)),
        (("t", "many", 1, "sub", "z"), (17, 5)),
    ],
)
def test_values_are_found_where_they_stand(path: KeyPath, value_at: tuple[int, int]) -> None:
    assert line_column(TEXT, locate(TEXT)[path].value) == value_at
