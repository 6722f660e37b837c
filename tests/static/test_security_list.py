"""docs/security.md names tests as proof: each of them exists, and every row of a table has one."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_named_test_exists() -> None:
    named = NAMED.findall(TEXT)
    assert len(named) > 40
    assert [
        f"{path}::{name}" for path, name in named if not (ROOT / path).exists() or name not in functions(path)
    ] == []


def test_every_row_names_its_proof() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| it tries")]
    assert len(rows) > 35
    assert [row for row in rows if not NAMED.search(row)] == []
