"""A shown configuration reads back as itself."""

from pathlib import Path

import pytest

from aoabridge.config import parse_config
from aoabridge.config.show import as_toml, origins, toml_value

EXAMPLE = (Path(__file__).parents[2] / "vectors" / "config_example.toml").read_text()
SEVERAL = '[[sources.j519]]\nname = "a"\n[[sources.j519]]\nname = "b"\n[log.levels]\n"a.b" = "info"'


@pytest.mark.parametrize("text", [EXAMPLE, SEVERAL, '[[device]]\nname = "p"\nport = "1-1"\n'])
@pytest.mark.parametrize("effective", [True, False])
def test_the_text_parses_to_the_same_configuration(text: str, effective: bool) -> None:
    loaded = parse_config(text, "f", host="box")
    assert loaded.config is not None
    shown = as_toml(loaded.config, loaded.given, effective=effective)
    again = parse_config(shown, "shown", host="box")
    assert again.errors == ()
    assert again.config == loaded.config


def test_each_value_names_its_origin() -> None:
    loaded = parse_config('[nt]\nteam = 6458\n[log]\nlevel = "debug"', "f", host="box")
    assert loaded.config is not None
    lines = as_toml(loaded.config, loaded.given, {"log.level"}).splitlines()
    assert "team = 6458  # file" in lines
    assert "port = 5810  # default" in lines
    assert 'level = "debug"  # flag' in lines
    assert origins(loaded.config, loaded.given)["nt.team"] == "file"


def test_texts_are_escaped() -> None:
    assert toml_value('a"b\\c\n\x7f') == '"a\\"b\\\\c\\n\\U0000007F"'
