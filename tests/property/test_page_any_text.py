"""Whatever a phone, a robot or a file says, the page holds the elements of its own and nothing else."""

from collections import Counter
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from aoabridge.status import PhoneView, RobotView, SourceView
from aoabridge.status.page import page
from aoabridge.status.views import ConfigView
from fakes.pages import Scenario
from fakes.views import inputs

TEXT = st.text(st.characters() | st.sampled_from("<>&\"'`/=\n\0"), max_size=40)
NUMBER = st.none() | st.floats(0, 1e9)


class Elements(HTMLParser):
    """Counts elements and attribute names."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[tag] += 1
        self.found.update(f"{tag} {name}" for name, _ in attrs)

    def handle_comment(self, data: str) -> None:
        self.found["comment"] += 1

    def unknown_decl(self, data: str) -> None:
        self.found["declaration"] += 1


def elements(text: str, number: float | None) -> Counter[str]:
    phone = PhoneView(text, "live", text, text, text, None, text, text, latency_ms=number, last_line_age_s=number)
    scenario = Scenario(
        "PROBLEM",
        inputs(
            name=text,
            version=text,
            phones=(phone,),
            robot=RobotView("lost", text, text, mode=text, match=text),
            config=ConfigView(text, "rejected", (text,), (text,)),
            sources=(SourceView("frc", text, True), SourceView("frc", text + "2", True)),
        ),
        ("config-rejected", "config", {"error": text}),
        ("put-refused", text, {"code": text, "topic": text}),
    )
    view = scenario.view()
    view["watched"] = [{"name": text, "type": text, "hz": 1.0, "age_s": number, "readers": 1}]
    parser = Elements()
    parser.feed(page(view))
    parser.close()
    return parser.found


@settings(deadline=None)
@given(TEXT, NUMBER)
def test_no_text_makes_markup(text: str, number: float | None) -> None:
    plain = elements("".join("x" if character != "`" else character for character in text), number)
    found = elements(text, number)
    for counts in (plain, found):
        counts.pop("code", None)  # set apart by backticks, which a topic may hold too
    assert found == plain
