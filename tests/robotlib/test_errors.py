"""Texts for the phone: one line that every screen shows as it was written."""

import pytest

from robotlib import PlanError, parse
from robotlib.errors import clean, sentence


@pytest.mark.parametrize(
    "foreign", ["\x00", "\n", "\x9f", "\u2028", "\ud800", "\ufeff", "\u202e", "\u200b", "\U000e0041"]
)
def test_nothing_invisible_of_a_name_is_quoted(foreign):
    assert clean(f"A{foreign}ON") == "AON"
    assert sentence(f"A{foreign}ON is lost.") == "A ON is lost."


def test_names_in_any_script_are_quoted():
    assert clean("Größe 経路 Ω") == "Größe 経路 Ω"


@pytest.mark.parametrize("foreign", ["\u3000", "\xa0", "\ue000", "\U000323af"])
def test_blanks_of_other_scripts_and_characters_newer_than_python_are_quoted(foreign):
    assert clean(f"左{foreign}赤") == f"左{foreign}赤"
    assert sentence(f"左{foreign}赤 is lost.") == f"左{foreign}赤 is lost."


def test_a_refused_type_is_told_without_its_direction_override():
    with pytest.raises(PlanError) as caught:
        parse('{"type":"ACT\\u202eION"}')
    assert caught.value.message == "Unknown step type 'ACTION'."
