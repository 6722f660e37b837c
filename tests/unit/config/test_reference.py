"""The configuration reference is complete and the committed page is the generated one."""

import os
from pathlib import Path

from aoabridge.config.meanings import MEANINGS
from aoabridge.config.reference import documented_keys, reference

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_every_key_has_a_sentence_and_nothing_else_has():
    assert set(MEANINGS) == set(documented_keys())


def test_the_page_is_up_to_date():
    if os.environ.get("GOLDEN") == "write":
        PAGE.write_text(reference())
    assert PAGE.read_text() == reference()
