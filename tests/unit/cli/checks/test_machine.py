"""Checks of the machine against trees of small files and stand-in figures."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from aoabridge.cli.checks.machine import group_checks, journal_checks, platform_checks, power_checks, unit_checks
from aoabridge.cli.checks.result import Check, Outcome

UNIT = "[Unit]\n"


def outcomes(checks: Iterable[Check]) -> list[tuple[str, str]]:
    found = list(checks)
    assert all((check.fix is None) == (check.outcome is Outcome.PASS) for check in found)
    return [(check.code, check.outcome.value) for check in found]


@pytest.mark.parametrize(
    ("glibc", "wide", "python", "text"),
    [
        ("2.36", True, (3, 11), None),
        ("", True, (3, 13), None),
        ("2.31", True, (3, 11), "glibc 2.31"),
        ("2.36", False, (3, 11), "32-bit"),
        ("2.36", True, (3, 9), "Python 3.9"),
    ],
)
def test_the_platform(glibc: str, wide: bool, python: tuple[int, int], text: str | None) -> None:
    (check,) = platform_checks(glibc, wide, python)
    assert check.outcome is (Outcome.PASS if text is None else Outcome.FAIL)
    assert text is None or text in check.text


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_an_edited_unit_is_named(tmp_path: Path) -> None:
    assert outcomes(unit_checks(tmp_path)) == [("unit-edited", "PASS")]
    write(tmp_path, "usr/lib/systemd/system/aoabridge.service", UNIT)
    assert outcomes(unit_checks(tmp_path)) == [("unit-edited", "PASS")]
    write(tmp_path, "etc/systemd/system/aoabridge.service", UNIT + "# mine")
    checks = list(unit_checks(tmp_path))
    assert checks == [
        Check("unit-edited", Outcome.WARN, "The service unit differs from the package", "`systemctl revert aoabridge`")
    ]


def test_a_large_journal_is_named(tmp_path: Path) -> None:
    assert outcomes(journal_checks(tmp_path)) == [("journal-large", "PASS")]
    write(tmp_path, "var/log/journal/x/system.journal", "")
    with (tmp_path / "var/log/journal/x/system.journal").open("r+b") as file:
        file.truncate(501 * 2**20)
    assert outcomes(journal_checks(tmp_path)) == [("journal-large", "WARN")]


def test_power_and_usb_memory(tmp_path: Path) -> None:
    assert outcomes(power_checks(tmp_path)) == []
    write(tmp_path, "sys/devices/platform/soc/soc:firmware/get_throttled", "1")
    write(tmp_path, "sys/module/usbcore/parameters/usbfs_memory_mb", "8\n")
    assert outcomes(power_checks(tmp_path)) == [("usb-power", "WARN"), ("usb-memory", "WARN")]
    write(tmp_path, "sys/devices/platform/soc/soc:firmware/get_throttled", "0")
    write(tmp_path, "sys/module/usbcore/parameters/usbfs_memory_mb", "16\n")
    assert outcomes(power_checks(tmp_path)) == [("usb-power", "PASS")]


def test_a_user_outside_the_group_is_told_the_command() -> None:
    ((code, outcome),) = outcomes(group_checks("nobody"))
    assert (code, outcome) == ("group-missing", "WARN")
