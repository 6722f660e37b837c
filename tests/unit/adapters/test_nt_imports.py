"""One module to change for a new ntcore, and no callback in which an exception could abort the process."""

import ast
from pathlib import Path

import aoabridge

ROOT = Path(aoabridge.__file__).parent


def modules() -> dict[str, ast.Module]:
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in ROOT.rglob("*.py")}


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_only_two_modules_import_ntcore() -> None:
    users = {name for name, tree in modules().items() if "ntcore" in imported(tree)}
    assert users == {"adapters/nt.py", "adapters/nt_server.py"}


def test_no_listener_has_a_callback() -> None:
    """A poller's add methods take at most two arguments; those with a callback take three."""
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in ("addListener", "addLogger"):
                    assert len(node.args) + len(node.keywords) == 2, f"{name}:{node.lineno}"
                if node.func.attr in ("addConnectionListener", "addTimeSyncListener"):
                    assert len(node.args) + len(node.keywords) == 1, f"{name}:{node.lineno}"
