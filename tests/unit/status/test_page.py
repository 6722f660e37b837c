"""The page as HTML: verdict first, broken links in the chain, no foreign text as markup, no invented figures."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from aoabridge.status import PhoneView, RobotView
from aoabridge.status.page import body, page, title
from fakes.pages import HOSTILE, PIXEL, SCENARIOS, Scenario, hostile, many_problems, phone_lost
from fakes.views import inputs

VOID = {"meta", "link", "br"}
OPTIONAL_END = {"td"}
ELEMENTS = (
    VOID
    | OPTIONAL_END
    | {
        *(
            "html",
            "head",
            "title",
            "noscript",
            "body",
            "div",
            "main",
            "section",
            "header",
            "h1",
            "h2",
            "p",
            "b",
            "strong",
        ),
        *("small", "span", "ul", "li", "code", "table", "tr", "i", "footer", "a", "script"),
    }
)


class Reader(HTMLParser):
    """Elements, texts by element, and attributes; complains of what is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: set[str] = set()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID | OPTIONAL_END:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def text(html: str, glue: str = " ") -> str:
    return " ".join(glue.join(data for _, data in read(html).texts).split())


def status_line(html: str) -> str:
    start = html.index('<p role="status">')
    return text(html[start : html.index("</p>", start) + 4], "")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("healthy", "✓ OK 2 PHONES FLOWING, ROBOT CONNECTED"),
        ("waiting", "… WAITING no phone; robot not connected"),
        ("phone-lost", "X PROBLEM 1 of 2 phones lost; robot connected"),
        ("robot-down", "X PROBLEM 1 phone flowing; robot not connected"),
        ("many-problems", "X PROBLEM 1 of 2 phones lost; robot lost"),
        (
            "config-rejected",
            "X PROBLEM Configuration refused: aoabridge.toml:14:8: nt.team: 99999 …; no phone; no robot chosen",
        ),
    ],
)
def test_the_verdict_is_the_first_thing_said(name: str, line: str) -> None:
    view = SCENARIOS[name]().view()
    assert status_line(page(view)) == line
    assert title(view).startswith(line.split()[1])


@pytest.mark.parametrize("scenario", [*SCENARIOS.values(), hostile], ids=lambda scenario: scenario.__name__)
def test_the_document_is_well_formed_and_knows_no_inline_script(scenario: Callable[[], Scenario]) -> None:
    found = read(page(scenario().view()))
    assert found.elements <= ELEMENTS
    assert [value for tag, name, value in found.attributes if tag == "script"] == ["/app.js"]
    assert not [item for item in found.attributes if item[1].startswith("on") or item[1] == "style"]
    addresses = [value for _, name, value in found.attributes if name in ("href", "src", "data-panel")]
    assert all(address and address.startswith("/") and not address.startswith("//") for address in addresses)
    assert not [data for element, data in found.texts if element == "script" and data]


def test_hostile_texts_stay_text_wherever_they_stand() -> None:
    html = page(hostile().view())
    assert "<img" not in html
    shown = text(html)
    assert shown.count(HOSTILE) >= 12
    attributes = read(html).attributes
    assert not [value for _, name, value in attributes if value and "owned" in value and name != "href"]


def test_quotes_do_not_leave_attributes() -> None:
    view = SCENARIOS["healthy"]().view()
    view["name"] = view["phones"][0]["name"] = '" onfocus="x'
    found = read(page(view))
    assert not [item for item in found.attributes if item[1] == "onfocus"]


def test_each_problem_has_its_imperative_and_the_rest_is_counted() -> None:
    shown = text(body(many_problems().view()))
    for imperative in (
        '→ Open the app on pixel7, accept the USB dialog, tick "always"',
        "→ Push the plug in at port 1-1.3, then unlock it",
        "→ Check Ethernet to the radio/roboRIO; robot code restarted?",
    ):
        assert imperative in shown
    assert "and 1 more: aoabridge doctor" in shown
    assert "3 PROBLEMS" in shown
    assert "keeps dropping" not in shown


def test_few_problems_also_say_what_to_do_if_the_first_cure_did_not_help() -> None:
    shown = text(body(phone_lost().view()))
    assert "1 PROBLEM " in shown
    assert "Still red after 10 s? → Try another cable; then run: aoabridge doctor scout" in shown
    assert "Still red after 10 s? → Run: aoabridge doctor" in text(body(SCENARIOS["robot-down"]().view()))
    for scenario in ("healthy", "waiting", "many-problems"):
        assert "Still red" not in text(body(SCENARIOS[scenario]().view()))
    view = phone_lost().view()
    view["issues"][0]["subject"] = "a'; reboot"
    assert "aoabridge doctor 'a'\"'\"'; reboot'" in text(body(view))


def test_the_footer_leads_on_and_says_where_the_log_is() -> None:
    view = SCENARIOS["healthy"]().view()
    assert re.search(r"Topics Log Config Status$", text(body(view)).strip())
    view["host"]["read_only"] = True
    assert text(body(view)).strip().endswith("read-only disk: logs in RAM")
    for scenario in SCENARIOS.values():
        targets = [value for _, name, value in read(page(scenario().view())).attributes if name == "id"]
        assert targets.count("topics") == 1


def test_commands_are_set_apart() -> None:
    view = SCENARIOS["config-rejected"]().view()
    assert "→ <code>aoabridge config check</code>".replace("→", "&#8594;") in body(view)


def test_a_refused_file_shows_its_errors() -> None:
    shown = text(body(SCENARIOS["config-rejected"]().view()))
    assert "aoabridge.toml:14:8: nt.team: 99999 is not in 1..25599" in shown
    assert "aoabridge.toml:19:1: acess: unknown; did you mean access?" in shown


def arrows(view: dict[str, Any]) -> list[str]:
    return [
        value.removeprefix("arrow ")
        for _, name, value in read(body(view)).attributes
        if name == "class" and value and value.startswith("arrow ")
    ]


def test_the_chain_breaks_where_the_link_is_broken() -> None:
    assert arrows(SCENARIOS["healthy"]().view()) == ["ok", "ok", "ok"]
    assert arrows(phone_lost().view()) == ["ok", "bad", "ok"]
    assert arrows(SCENARIOS["robot-down"]().view()) == ["ok", "bad"]
    assert arrows(SCENARIOS["waiting"]().view()) == ["warn", "warn"]
    assert arrows(many_problems().view()) == ["bad", "bad", "bad"]


def test_a_phone_on_its_way_is_no_fault() -> None:
    on_its_way = Scenario("WAITING", inputs(phones=(PhoneView("p", "switching", "1-1"),)))
    assert arrows(on_its_way.view()) == ["warn", "ok"]


def test_colour_is_never_alone() -> None:
    for scenario in SCENARIOS.values():
        found = read(body(scenario().view()))
        coloured = [value for _, name, value in found.attributes if name == "class" and value]
        assert coloured
        for word in ("OK", "WAITING", "PROBLEM"):
            if scenario().verdict == word:
                assert word in text(body(scenario().view()))
    assert text(body(phone_lost().view())).count("X ") >= 3


def test_unknown_is_left_out_or_said() -> None:
    phone = PhoneView("p", "live", "1-1")
    bare = Scenario("OK", inputs(robot=RobotView("connected"), phones=(phone,), team=None))
    shown = text(page(bare.view()))
    assert "None" not in shown
    assert "nan" not in shown.lower()
    assert "last never" in shown
    assert not re.search(r"\d C\b", shown)
    assert "%" not in shown
    assert "team" not in shown


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0, "0.0 s"), (9.94, "9.9 s"), (10.0, "10 s"), (59.0, "59 s"), (60.0, "00:01:00"), (360000.0, "100:00:00")],
)
def test_durations(seconds: float, expected: str) -> None:
    view = SCENARIOS["healthy"]().view()
    view["uptime_s"] = seconds
    assert f"up {expected} " in text(body(view))


def test_old_values_are_marked() -> None:
    view = Scenario("OK", inputs(phones=(msgspec.structs.replace(PIXEL, last_line_age_s=2.0),))).view()
    assert 'class="age old" data-age="2.0"' in body(view)
    view["phones"][0]["last_line_age_s"] = 1.9
    view["watched"] = []
    assert 'class="age old"' not in body(view)


def test_a_test_robot_is_no_robot() -> None:
    real = SCENARIOS["healthy"]().views
    assert "NOT A ROBOT" not in body(Scenario("OK", real).view())
    fake = msgspec.structs.replace(real, robot=msgspec.structs.replace(real.robot, test=True))
    assert "NOT A ROBOT" in body(Scenario("OK", fake).view())


def test_silent_topics_are_called_stale() -> None:
    shown = text(body(SCENARIOS["healthy"]().view()))
    assert "/scout/notes 0/s age 12 s STALE string[] → 1 reader" in shown
    assert "3 readers" in shown
    assert shown.count("STALE") == 1


def test_without_script_the_page_reloads_itself() -> None:
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in page(SCENARIOS["waiting"]().view())
