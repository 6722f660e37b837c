"""The import directions of docs/architecture.md, the public surfaces, and what pure code may not touch."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "aoabridge"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Higher number = higher layer; a module imports only from lower layers, or from its own package.
LAYERS = {
    "errors": 0,
    "exits": 0,
    "issues": 0,
    "values": 1,
    "codecs": 2,
    "phone": 2,
    "status": 2,
    "adapters": 3,
    "bridge": 3,
    "sources": 3,
    "simulators": 3,
    "config": 4,
    "daemon": 5,
    "cli": 6,
    "__main__": 7,
}
PURE = {"bridge", "codecs", "phone", "status", "values", "errors", "exits", "issues", "sources", "simulators"}
IMPURE_MODULES = {
    "socket", "asyncio", "threading", "queue", "select", "subprocess", "time", "logging", "usb", "ntcore", "wpiutil",
    "systemd", "pyudev",
}  # fmt: skip
ONLY_IN = {
    "usb": {"adapters/usb.py"},
    "libusb_package": {"adapters/usb.py"},
    "pyudev": {"adapters/hotplug.py"},
    "ntcore": {"adapters/nt.py", "adapters/nt_server.py"},
    "wpiutil": {"adapters/nt.py", "adapters/nt_server.py", "adapters/recorder.py"},
    "systemd": set(),  # its calls hold the interpreter's lock while they wait
    "websockets": {"adapters/web.py"},
    "rich": {"cli/live.py"},
}
PHONE_FOR_ADAPTERS = {"aoabridge.phone.aoa"}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def layer_of(module: str) -> str:
    """``codecs`` for ``aoabridge.codecs.packets``; "" for the package itself (version only)."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports_of(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: relative import"
            assert node.module is not None
            found.append(node.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for module in imports_of(path):
        if module == "aoabridge" or not module.startswith("aoabridge.") or own == "__init__":
            continue
        other = layer_of(module)
        assert other == own or LAYERS[other] < LAYERS[own], f"{name_of(path)} imports {module}"
        if own == "adapters" and other == "phone":
            assert module in PHONE_FOR_ADAPTERS, f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_pure_code_has_no_io_thread_or_clock(path: Path) -> None:
    if path.relative_to(PACKAGE).parts[0].removesuffix(".py") in PURE:
        touched = {module.split(".")[0] for module in imports_of(path)} & IMPURE_MODULES
        assert not touched


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_each_outside_library_has_one_importer(path: Path) -> None:
    for module in imports_of(path):
        allowed = ONLY_IN.get(module.split(".")[0])
        assert allowed is None or name_of(path) in allowed, f"{name_of(path)} imports {module}"


def test_the_bridge_and_robotlib_do_not_know_each_other() -> None:
    for path in MODULES:
        assert not [module for module in imports_of(path) if module.split(".")[0] == "robotlib"], name_of(path)
    for path in sorted((ROOT / "robotlib").glob("*.py")):
        tree = ast.parse(path.read_text())
        names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not [name for name in names if name.split(".")[0] == "aoabridge"], path.name


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_all_lists_names_that_exist(path: Path) -> None:
    if path.name != "__main__.py":
        module = importlib.import_module(module_of(path))
        names = getattr(module, "__all__", [])
        assert len(names) == len(set(names))
        assert [name for name in names if not hasattr(module, name)] == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_public_names_are_imported(path: Path) -> None:
    """``__all__`` is the surface: what another module uses must stand in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aoabridge"):
            module = importlib.import_module(node.module or "")
            surface = set(getattr(module, "__all__", ()))
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}" in sys.modules
                assert alias.name in surface or submodule, f"{name_of(path)}: {node.module}.{alias.name}"


def test_no_listener_callbacks() -> None:
    """A Python exception inside an ntcore callback aborts the process."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "addListener":
                assert not any(isinstance(argument, ast.Lambda) for argument in node.args), name_of(path)


def test_the_version_is_the_only_public_name_of_the_package() -> None:
    package = importlib.import_module("aoabridge")
    assert package.__all__ == ["__version__"]
    assert sys.version_info >= (3, 11)
