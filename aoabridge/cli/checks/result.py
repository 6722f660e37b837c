"""The outcome of one check, worded by the issue table where the table has a row."""

from enum import Enum

import msgspec

from aoabridge.issues import ISSUES, MAX_FIX, MAX_SENTENCE, Severity, filled
from aoabridge.status.text import printable

__all__ = ["Check", "Outcome", "from_issue", "passed"]


class Outcome(Enum):
    """How a check ended."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"


class Check(msgspec.Struct, frozen=True):
    """One line of the doctor; all but PASS have a ``fix``. ``subject`` is a phone or port, "" = the machine."""

    code: str
    outcome: Outcome
    text: str
    fix: str | None = None
    subject: str = ""


_BY_SEVERITY = {Severity.PROBLEM: Outcome.FAIL, Severity.WARN: Outcome.WARN, Severity.INFO: Outcome.WARN}


def passed(code: str, text: str, subject: str = "") -> Check:
    """A check without complaint."""
    return Check(code, Outcome.PASS, printable(text), None, subject)


def from_issue(code: str, subject: str = "", *, fix: str | None = None, **data: object) -> Check:
    """A complaint in the words of the issue table; ``fix`` replaces the table's where a better one is known."""
    spec = ISSUES[code]
    texts = {name: printable(str(value)) for name, value in {"subject": subject, **data}.items()}
    cure = filled(spec.fix, texts, MAX_FIX) if fix is None else fix
    return Check(code, _BY_SEVERITY[spec.severity], filled(spec.sentence, texts, MAX_SENTENCE), cure, subject)
