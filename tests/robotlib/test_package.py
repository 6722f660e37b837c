"""What robotlib depends on, how it installs, what it costs to import."""

import ast
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import robotlib

PACKAGE = Path(robotlib.__file__).parent
ROOT = PACKAGE.parent
EDGES = {
    "receiver.py": {"ntcore"},
    "commands.py": {"commands2"},
    "pathplanner.py": {"pathplannerlib", "wpimath"},
    "wpi.py": {"wpilib", "wpimath"},
}
EDGE_MODULES = ("ntcore", "wpilib", "wpimath", "commands2", "pathplannerlib", "numpy")


def imported(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("file", sorted(PACKAGE.glob("*.py")), ids=lambda file: file.name)
def test_imports(file):
    foreign = {name for name in imported(file) if name not in sys.stdlib_module_names}
    assert foreign <= EDGES.get(file.name, set())


def python(code, **options):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60, **options)


def test_no_edge_is_loaded():
    use = 'import robotlib, sys; robotlib.parse(\'{"type":"ACTION","actionId":1}\')'
    every = "; robotlib.bind; robotlib.Executor; robotlib.DryRun; robotlib.EXTENSIONS; robotlib.PlanControl"
    show = f"; print([m for m in {EDGE_MODULES!r} if m in sys.modules])"
    assert python(use + show).stdout.strip() == "[]"
    assert python(use + every + show).stdout.strip() == "[]"


@pytest.mark.parametrize("name", sorted(set(robotlib.__all__) - {"CommandRoboRoute", "PlanCommand"}))
def test_public_names_exist(name):
    if name in ("RoboRoute", "PathPlannerLeaves", "WpilibHost"):
        assert python(f"import robotlib; print(robotlib.{name})").returncode == 0
    else:
        assert getattr(robotlib, name) is not None


def test_missing_extras_are_named():
    block = "import sys; sys.modules.update(ntcore=None, commands2=None, pathplannerlib=None, wpilib=None)\n"
    for name, needs, install in (
        ("RoboRoute", "pyntcore", "robotlib[nt]"),
        ("CommandRoboRoute", "commands2", "robotlib[nt,commands]"),
        ("PathPlannerLeaves", "pathplannerlib", "robotlib[pathplanner]"),
        ("WpilibHost", "wpilib", "robotpy"),
    ):
        done = python(block + f"import robotlib\nrobotlib.{name}")
        assert f"ImportError: {name} needs {needs}: install {install}" in done.stderr
    assert "no attribute" in python("import robotlib\nrobotlib.Nope").stderr


def test_import_time(tmp_path):
    """The limit is 30 ms where the interpreter's own modules cost 10 to 14: as a ratio, since machines differ."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def cost(code):
        timed = f"import time; t = time.process_time()\n{code}\nprint(time.process_time() - t)"
        return min(float(python(timed, env=environment).stdout) for _ in range(6))

    own = cost("import robotlib")
    needed = cost("import json, dataclasses, hashlib, re, typing, collections.abc, importlib")
    assert own <= 2.1 * needed, (own, needed)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    source = tmp_path_factory.mktemp("source")
    for file in (*PACKAGE.glob("*.py"), PACKAGE / "py.typed", PACKAGE / "pyproject.toml"):
        (source / file.name).write_bytes(file.read_bytes())
    out = tmp_path_factory.mktemp("wheel")
    # --no-build-isolation: nothing is fetched.
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-q",
        "-w",
        str(out),
        str(source),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    return next(out.glob("*.whl"))


def test_wheel(wheel):
    assert wheel.name == f"robotlib-{robotlib.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    modules = {f"robotlib/{file.name}" for file in PACKAGE.glob("*.py")} | {"robotlib/py.typed"}
    assert {name for name in names if not name.startswith("robotlib-")} == modules
    requires = [line for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    assert len(requires) == 3
    assert all("extra ==" in line for line in requires)
    assert "Requires-Python: >=3.11" in metadata


def test_installs_and_runs_in_an_empty_environment(wheel, tmp_path):
    home = tmp_path / "env"
    venv.create(home, with_pip=False)
    target = sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)})
    python_there = home / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python_there), "install", "--no-deps", "--no-index", "-q"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, timeout=100)
    assert Path(target, "robotlib").is_dir()
    done = subprocess.run(
        [str(python_there), "-I", "-m", "robotlib", "check", "-", "--json"],
        input=b'{"type":"ACTION","actionId":1}',
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b'{"ok":true')
