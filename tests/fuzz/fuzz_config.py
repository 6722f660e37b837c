"""Configuration files: any text is a configuration or a list of errors with places, and comes back as it was."""

from pathlib import Path

from aoabridge.config import changes, effective, parse_config
from aoabridge.config.show import as_toml

EXAMPLE = Path(__file__).parents[1] / "vectors" / "config_example.toml"


def run(data: bytes) -> None:
    """Judge one file."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return
    result = parse_config(text, "f", host="box")
    assert (result.config is None) == bool(result.errors)
    lines = text.count("\n") + 1
    for error in result.errors:
        assert error.line is None or 1 <= error.line <= lines + 1
        assert str(error)
    if result.config is None:
        return
    assert effective(result.config, result.config) == result.config
    assert changes(result.config, result.config) == []
    assert parse_config(as_toml(result.config, result.given), "again", host="box").config == result.config


def seeds() -> list[bytes]:
    """The example whole and table by table, and what TOML itself is fond of."""
    text = EXAMPLE.read_text()
    tables = [f"[{part}" for part in text.split("\n[")[1:]]
    odd = ["a.b.c = 1\n[a]\nb = 2", 'name = "\\u0000"', "nt = {server = [1, 'a']}", "name = '''x\ny'''", "[[device]]"]
    return [part.encode() for part in (text, *tables, *odd)]
