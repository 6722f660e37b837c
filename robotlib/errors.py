"""The exceptions of robotlib, the table of their codes, and the rules for texts that reach a phone."""

from __future__ import annotations

import unicodedata

__all__ = [
    "BIND_CODES",
    "MAX_TEXT",
    "PARSE_CODES",
    "PlanError",
    "RegistryError",
    "StepFailed",
    "clean",
    "sentence",
]

MAX_TEXT = 120  # one or two lines on a phone
MAX_FOREIGN = 40  # what a text quotes of a name that somebody else wrote

PARSE_CODES = frozenset({
    "empty", "too-large", "bad-encoding", "bad-json", "too-deep", "too-many-nodes", "too-many-poses",
    "number-too-long", "not-finite", "duplicate-key", "wrong-type", "missing-field", "unknown-type",
    "conflicting-fields", "bad-path-name", "empty-route", "off-field", "out-of-range", "parallel-drive-conflict",
})  # fmt: skip
BIND_CODES = frozenset({"unknown-action", "path-not-found", "requirement-conflict", "goal-in-obstacle", "no-drive"})


# Control characters break a line, lone surrogates an encoding, and format characters (a direction override, a byte
# order mark) make a phone show something else than what was sent.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in _INVISIBLE


def clean(text: str, limit: int = MAX_FOREIGN) -> str:
    """Return the visible characters and blanks of `text`, cut to `limit` code points."""
    return "".join(filter(_is_visible, text[: limit * 4]))[:limit]


def sentence(text: str) -> str:
    """Return `text` as one line of at most MAX_TEXT code points that ends in a full stop or question mark."""
    line = "".join(item if _is_visible(item) else " " for item in text[: MAX_TEXT * 4]).strip()
    if len(line) > MAX_TEXT:
        line = line[: MAX_TEXT - 3].rstrip() + "..."
    return line if line.endswith((".", "?")) else line[: MAX_TEXT - 1] + "."


class PlanError(ValueError):
    """A plan that is not accepted: `code` of the table, JSON `path` of the culprit, `message` for the phone."""

    def __init__(self, code: str, path: str, message: str) -> None:
        self.code = code
        self.path = path
        self.message = message
        super().__init__(code, path, message)

    def __str__(self) -> str:
        return f"{self.path}: {self.message} [{self.code}]"

    def to_dict(self) -> dict[str, str]:
        """Return code, path and message as a new dict."""
        return {"code": self.code, "path": self.path, "message": self.message}


class RegistryError(ValueError):
    """Robot code registered an action or a step type that cannot be registered."""


class StepFailed(Exception):  # noqa: N818  (raised by robot code to end a plan; reads as what it says)
    """Raised inside a step to fail the plan with an own code and text."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        self.text = text
        super().__init__(code, text)
