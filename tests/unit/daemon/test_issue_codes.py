"""No row of the issue table is forgotten: the program names each code that is not doctor's alone, and a test each."""

from pathlib import Path

import pytest

from aoabridge.issues import ISSUES

ROOT = Path(__file__).parents[3]
RAISING = [path for path in (ROOT / "aoabridge").rglob("*.py") if path.name != "issues.py"]
TESTS = [
    path for path in (ROOT / "tests").rglob("test_*.py") if path.name not in ("test_issues.py", "test_issue_codes.py")
]


@pytest.mark.parametrize("code", ISSUES)
def test_every_code_is_raised_and_tested(code: str) -> None:
    literal = f'"{code}"'
    assert any(literal in path.read_text() for path in RAISING), "nobody raises it"
    assert any(literal in path.read_text() for path in TESTS), "no test sees it"
