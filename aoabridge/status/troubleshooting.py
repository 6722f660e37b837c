"""The issue table as the journal's message catalogue and as a page of the documentation."""

import re
from collections.abc import Iterator

from aoabridge.issues import EVENTS, ISSUES, Severity, message_id

__all__ = ["journal_catalog", "troubleshooting_page"]

DOCUMENTATION = "man:aoabridge(8)"

_EVENT_TEXTS = {
    "started": ("The bridge has started", "Nothing to do."),
    "stopping": ("The bridge is stopping", "Nothing to do."),
    "ready": ("The bridge is ready", "Nothing to do; phones and robot may come at any time."),
    "reloaded": ("The configuration was read again", "The line names every changed key, old and new."),
    "phone-live": ("A phone is live", "Nothing to do."),
    "phone-gone": ("A phone has gone", "If it was not unplugged on purpose: see phone-lost."),
    "nt-connected": ("The robot is connected", "Nothing to do."),
    "record-started": ("A recording has begun", "Stop it with `aoabridge record stop`."),
    "record-ended": ("A recording has ended", "Nothing to do."),
    "match-start": ("A match has begun", "Nothing to do."),
    "match-end": ("A match has ended", "Nothing to do."),
}

_NAME = re.compile(r"\{([a-zA-Z_]+)\}")
_WORDS = {Severity.PROBLEM: "problem", Severity.WARN: "warning", Severity.INFO: "information"}

# What the names of the table stand for in the journal: its own fields, or a word.
_FIELDS = {
    "subject": "@AOABRIDGE_DEVICE@",
    "port": "@AOABRIDGE_PORT@",
    "code": "@AOABRIDGE_CODE@",
    "host": "@AOABRIDGE_SERVER@",
    "n": "@AOABRIDGE_COUNT@",
}


def journal_catalog() -> str:
    """The text of ``aoabridge.catalog``: what ``journalctl -x`` adds to a line."""
    return "\n".join(_entries()) + "\n"


def _entries() -> Iterator[str]:
    for code in EVENTS:
        subject, text = _EVENT_TEXTS[code]
        yield _entry(code, subject, text)
    for code, spec in ISSUES.items():
        yield _entry(code, _worded(spec.sentence), f"To mend it: {_worded(spec.fix)}")


def _entry(code: str, subject: str, text: str) -> str:
    head = f"-- {message_id(code)}\nSubject: {subject}\nDefined-By: aoabridge\nDocumentation: {DOCUMENTATION}"
    return f"{head}\n\n{text}\n"


def _worded(template: str) -> str:
    for name, field in _FIELDS.items():
        template = template.replace(f"{{{name}}}", field)
    return template.replace("{", "<").replace("}", ">")


def troubleshooting_page() -> str:
    """The text of ``docs/troubleshooting.md``."""
    lines = [
        "# Troubleshooting",
        "",
        "<!-- made from aoabridge/issues.py; change it there -->",
        "",
        "Every surface says these words: `aoabridge status`, the status page, the dashboard's alerts, the journal.",
        "`aoabridge doctor` checks the machine for those marked with *.",
        "",
        "| code | kind | what you see | what to do |",
        "|---|---|---|---|",
    ]
    for code, spec in ISSUES.items():
        mark = "*" if spec.doctor else ""
        texts = (_escaped(spec.sentence), _escaped(spec.fix))
        lines.append(f"| `{code}`{mark} | {_WORDS[spec.severity]} | {texts[0]} | {texts[1]} |")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return _NAME.sub(lambda match: match[1].upper(), text).replace("|", "\\|")
