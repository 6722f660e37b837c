"""Any text whatever is either a configuration or a list of errors with places inside the text; nothing is raised."""

import tomllib
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aoabridge.config import changes, effective, parse_config
from aoabridge.config.locate import KeyPath, locate
from aoabridge.config.show import as_toml, toml_value
from aoabridge.errors import ConfigError

EXAMPLE = (Path(__file__).parents[1] / "vectors" / "config_example.toml").read_text()
BASE = parse_config(EXAMPLE, "f", host="box").config

scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), inner, max_size=4),
    ),
    max_leaves=12,
)


def judged(text: str) -> tuple[ConfigError, ...]:
    result = parse_config(text, "f", host="box")
    assert (result.config is None) == bool(result.errors)
    lines = text.split("\n")
    for error in result.errors:
        assert error.line is None or 1 <= error.line <= len(lines) + 1
    if result.config is not None and BASE is not None:
        assert effective(result.config, result.config) == result.config
        assert effective(BASE, result.config).name == BASE.name
        assert changes(result.config, result.config) == []
        again = parse_config(as_toml(result.config, result.given), "again", host="box")
        assert again.config == result.config
    return result.errors


@given(st.text(max_size=200))
@settings(deadline=None)
def test_any_text(text: str) -> None:
    judged(text)


@given(st.integers(0, len(EXAMPLE)), st.integers(0, 40), st.text(max_size=10))
@settings(max_examples=300, deadline=None)
def test_the_example_with_a_piece_replaced(start: int, length: int, piece: str) -> None:
    judged(EXAMPLE[:start] + piece + EXAMPLE[start + length :])


@given(st.sampled_from([line for line in EXAMPLE.splitlines() if "=" in line.split("#")[0]]), values)
@settings(max_examples=300, deadline=None)
def test_any_value_at_any_key_is_taken_or_named(line: str, value: Any) -> None:
    name = line.partition("=")[0].strip()
    text = EXAMPLE.replace(line, f"{name} = {toml_value(value)}", 1)
    for error in judged(text):
        assert error.line is not None
        assert error.key is not None or "Invalid" in str(error) or "TOML" in str(error.hint)


def walk(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] + [found for key, item in items for found in walk(item, (*path, key))]


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), values, max_size=6))
@settings(deadline=None)
def test_every_key_of_any_document_is_located(document: dict[str, Any]) -> None:
    text = "".join(f"{toml_value(key)} = {toml_value(value)}\n" for key, value in document.items())
    places = locate(text)
    assert [path for path in walk(tomllib.loads(text)) if path and path not in places] == []
