"""What a page's server has to tell, as the test wants it."""

import itertools
from typing import Any

__all__ = ["Content"]


class Content:
    """Canned answers; ``verdict`` and ``health`` are set by the tests."""

    def __init__(self) -> None:
        self.verdict = "ok"
        self.health = True
        self.padding = ""
        self.asked: list[tuple[int, str, int]] = []
        self.lines: list[dict[str, Any]] = []
        self.number = itertools.count()
        self.fault: Exception | None = None

    def page(self) -> str:
        if self.fault is not None:
            raise self.fault
        return "<p>page \u00e4 \ud800</p>"

    def body(self) -> str:
        return "<p>" + self.padding + "</p>"

    def title(self) -> str:
        return self.verdict.upper()

    def status(self) -> dict[str, Any]:
        return {"schema": 1, "verdict": self.verdict, "name": "pi", "uptime_s": next(self.number)}

    def logs(self, count: int, level: str, since: int) -> dict[str, Any]:
        self.asked.append((count, level, since))
        return {"lines": self.lines[since:][-count:], "next": len(self.lines)}

    def config(self) -> dict[str, Any]:
        return {"effective": {}}

    def healthy(self) -> bool:
        return self.health

    def asset(self, name: str) -> tuple[str, bytes] | None:
        return ("text/css; charset=utf-8", b"body{}") if name == "app.css" else None
