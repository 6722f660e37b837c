"""The page as a person sees it: the verdict at a glance, on any screen, in any light, with or without script."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest

from browser.chromium import ROOT, Chromium
from browser.picture import shrink
from fakes.pages import HOSTILE, SCENARIOS

IMAGES = ROOT / "docs" / "images"
PICTURED = ("healthy", "phone-lost", "robot-down", "many-problems")
VERDICTS = {
    "healthy": "✓ OK 2 PHONES FLOWING, ROBOT CONNECTED",
    "waiting": "… WAITING no phone; robot not connected",
    "phone-lost": "X PROBLEM 1 of 2 phones lost; robot connected",
    "robot-down": "X PROBLEM 1 phone flowing; robot not connected",
    "many-problems": "X PROBLEM 1 of 2 phones lost; robot lost",
    "config-rejected": (
        "X PROBLEM Configuration refused: aoabridge.toml:14:8: nt.team: 99999 …; no phone; no robot chosen"
    ),
}
Visit = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="session")
def visit(chromium: Chromium, urls: dict[str, str]) -> Iterator[Visit]:
    """What was found on a scenario's page; looked at once. ``GOLDEN=write`` renews the pictures of the manual."""

    @cache
    def look(name: str) -> dict[str, Any]:
        wanted = os.environ.get("GOLDEN") == "write" and name in PICTURED
        if not wanted:
            return chromium.ask("visit", url=urls[name])
        image = IMAGES / f"page-{name}.png"
        found = chromium.ask("visit", url=urls[name], image=str(image))
        shrink(image)
        return found

    yield look


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_verdict_with_and_without_script(visit: Visit, name: str) -> None:
    found = visit(name)
    assert found["verdict"] == found["withoutScript"] == VERDICTS[name]
    assert found["title"].startswith(SCENARIOS[name]().verdict)


@pytest.mark.parametrize("name", [*SCENARIOS, "hostile"])
def test_no_error_and_nothing_leaves_the_machine(visit: Visit, name: str) -> None:
    found = visit(name)
    assert found["errors"] == []
    assert {urlsplit(address).hostname for address in found["requests"]} == {"127.0.0.1"}
    assert found["messages"] > 0


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_fits_the_screen(visit: Visit, name: str) -> None:
    wide, small, zoomed = (visit(name)[size] for size in ("wide", "small", "zoomed"))
    assert (wide["width"], wide["height"]) == (1280, 720)
    assert small["verdictBottom"] < small["chainBottom"] <= 640
    assert small["width"] == 360
    assert min(wide["verdict"], small["verdict"], zoomed["verdict"]) >= 32
    assert zoomed["width"] == 640  # 200 % zoom needs no scrolling sideways


@pytest.mark.parametrize("name", [*SCENARIOS, "hostile"])
@pytest.mark.parametrize("light", ["light", "dark"])
def test_contrast_and_names(visit: Visit, name: str, light: str) -> None:
    found = visit(name)[light]
    assert found["poor"] == []
    assert (found["nameless"], found["lang"], found["status"]) == (0, "en", 1)
    assert found["headings"][0] == "H1 aoabridge"
    background = [int(part) for part in found["background"].strip("rgb()").split(", ")]
    assert (sum(background) < 384) == (light == "dark")


def test_a_hostile_name_stays_text(visit: Visit) -> None:
    found = visit("hostile")
    assert found["images"] == 0
    assert found["text"].count(HOSTILE) >= 8
    assert found["title"] == f"PROBLEM - aoabridge {HOSTILE}"


def test_everything_is_reached_by_keyboard(chromium: Chromium, urls: dict[str, str]) -> None:
    found = chromium.ask("keyboard", url=urls["healthy"])
    assert found["order"] == ["Topics", "Log", "Config"]
    assert '"effective"' in found["panel"]
    assert found["focused"] == "Config"


def test_at_most_five_messages_per_second(chromium: Chromium, urls: dict[str, str]) -> None:
    assert 2 <= chromium.ask("rate", url=urls["healthy"], seconds=2)["count"] <= 10


def test_the_pictures_of_the_manual_exist() -> None:
    for name in PICTURED:
        image = IMAGES / f"page-{name}.png"
        assert image.read_bytes().startswith(b"\x89PNG")
        assert image.stat().st_size < 100_000
