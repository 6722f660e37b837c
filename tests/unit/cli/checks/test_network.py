"""The chain to the robot, broken at each place in turn."""

import pytest

from aoabridge.adapters.reach import Answer
from aoabridge.cli.checks.network import network_checks
from aoabridge.config import Config, parse_config


def config(text: str) -> Config:
    loaded = parse_config(text, "f").config
    assert loaded is not None
    return loaded


@pytest.mark.parametrize(
    ("text", "linked", "answer", "expected"),
    [
        ("", True, "open", [("nt-unset", "FAIL")]),
        ("[nt]\nembedded = true", False, "silent", [("nt-unset", "PASS")]),
        ('[nt]\nserver = "10.1.2.3"', False, "open", [("nt-no-link", "FAIL")]),
        ('[nt]\nserver = "10.1.2.3"', True, "open", [("nt-timeout", "PASS")]),
        ('[nt]\nserver = "10.1.2.3"', True, "refused", [("nt-refused", "FAIL")]),
        ('[nt]\nserver = "10.1.2.3"', True, "silent", [("nt-timeout", "FAIL")]),
    ],
)
def test_the_first_broken_link_is_named(text: str, linked: bool, answer: str, expected: list[tuple[str, str]]) -> None:
    checks = list(network_checks(config(text), lambda: linked, lambda _: (Answer(answer), "10.1.2.3")))
    assert [(check.code, check.outcome.value) for check in checks] == expected


def test_a_team_outside_its_network_is_told_the_address_to_set() -> None:
    checks = list(network_checks(config("[nt]\nteam = 25599"), lambda: True, lambda _: (Answer.SILENT, "")))
    assert checks[0].code == "nt-subnet"
    assert checks[0].fix == "Set a static 10.255.99.6-.19, mask 255.255.255.0"
    assert checks[1].fix == "Is the robot on? `ping 10.255.99.2`; team number right?"
