"""The issue table: complete, unambiguous, short enough for every surface."""

import re

import pytest

from aoabridge.issues import EVENTS, ISSUES, MAX_FIX, MAX_SENTENCE, IssueSpec, Severity, filled, message_id

SEVERITIES = {
    "P": "usb-permission usb-busy usb-flapping phone-lost phone-switch app-silent app-stalled nt-unset nt-no-link "
    "nt-refused nt-timeout nt-lost nt-blocked name-conflict config-rejected source-bind platform usb-none",
    "W": "usb-unlisted usb-power usb-memory phone-refused app-garbage serial-duplicate nt-subnet nt-flapping "
    "put-refused schema-missing config-restart source-silent source-bad fms-info-owned web-bind-failed "
    "record-stopped overload update-rolled-back group-missing unit-edited journal-large",
    "I": "clock-step disk-read-only",
}


def test_every_code_is_there_once_with_its_severity() -> None:
    expected = {code: letter for letter, codes in SEVERITIES.items() for code in codes.split()}
    assert {code: spec.severity.name[0] for code, spec in ISSUES.items()} == expected
    assert all(spec.code == code for code, spec in ISSUES.items())
    assert not set(EVENTS) & set(ISSUES)


@pytest.mark.parametrize("spec", ISSUES.values(), ids=ISSUES)
def test_texts_are_short_and_no_fix_is_empty(spec: IssueSpec) -> None:
    assert 0 < len(spec.sentence) <= MAX_SENTENCE
    assert 0 < len(spec.fix) <= MAX_FIX
    assert not re.search(r"windows|device manager|zadig|com port", spec.fix, re.IGNORECASE)


def test_only_doctor_knows_the_installation_issues() -> None:
    doctor = {code for code, spec in ISSUES.items() if spec.doctor}
    assert doctor == {"platform", "usb-none", "group-missing", "unit-edited", "journal-large"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("phone-lost", "465d424854645067a7061e8be4f91cb6"),
        ("nt-lost", "5f06f279d40556059cfcf34e3e61386e"),
        ("started", "f12612ba0c4a5ecc851014350f116207"),
    ],
)
def test_message_ids_are_those_of_the_catalogue(code: str, expected: str) -> None:
    assert message_id(code) == expected


def test_names_are_filled_unknown_ones_shown_and_long_texts_cut() -> None:
    fix = ISSUES["phone-lost"].fix
    assert filled(fix, {"port": "1-1.3"}, MAX_FIX) == "Push the plug in at port 1-1.3, then unlock it"
    assert filled("a {b}", {}, 9) == "a ?"
    assert filled("{x}", {"x": "y" * 99}, 60) == "y" * 59 + "…"
    assert filled('allow = ["{vid}:*"]', {"vid": "2b4c"}, 60) == 'allow = ["2b4c:*"]'


def test_severities_rank_from_the_worst() -> None:
    assert sorted(Severity, key=lambda item: item.rank) == [Severity.PROBLEM, Severity.WARN, Severity.INFO]
