"""A clean root file system of the running Debian release, and the product's package; both kept below ``.cache/vm``.

Everything here is made beside its place and renamed, under a lock that ends with the process: a run that is killed
leaves nothing that the next one takes for good.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "vm"
DEB_WORK = ROOT / ".cache" / "deb"  # of systemd/deb/build
PACKAGES = (
    *("systemd-sysv", "udev", "dbus", "kmod", "iproute2", "procps"),
    *("python3", "python3-systemd", "libusb-1.0-0"),
)
WITHOUT = ("man/*", "doc/*", "locale/*", "info/*")
# A command of many processes, none of which goes on when this one is killed.
ENDS_WITH_US = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
)
TREE_S = 600
BUILD_S = 300
SOURCES = ("aoabridge", "systemd", "udev", "docs", "pyproject.toml", "README.md", "CHANGELOG.md")


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """One process at a time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def forget() -> None:
    """Everything that earlier runs have made, but for the locks."""
    for place in (CACHE, DEB_WORK):
        for path in place.glob("*"):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.suffix != ".lock" and path.name != "lock":
                path.unlink()


def codename() -> str:
    return platform.freedesktop_os_release()["VERSION_CODENAME"]


def digest(parts: Iterable[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:12]


def base_tree() -> Path:
    """A directory as root of a minimal system with a service manager, a device manager and what the package needs."""
    key = digest([codename().encode(), *(name.encode() for name in (*PACKAGES, *WITHOUT))])
    tree = CACHE / f"tree-{key}"
    with locked("tree"):
        if tree.is_dir():
            return tree
        for old in CACHE.glob("tree-*"):
            shutil.rmtree(old)
        unfinished = CACHE / "unfinished-tree"
        shutil.rmtree(unfinished, ignore_errors=True)
        without = [f"--dpkgopt=path-exclude=/usr/share/{pattern}" for pattern in WITHOUT]
        command = [
            *(*ENDS_WITH_US, "mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", "--format=directory"),
            *(f"--include={','.join(PACKAGES)}", *without, codename(), str(unfinished)),
        ]
        subprocess.run(command, check=True, timeout=TREE_S)
        for left in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(unfinished / left, ignore_errors=True)
        unfinished.rename(tree)
    return tree


def product() -> Path:
    """The package of the sources as they stand."""
    files = [path for name in SOURCES for path in sorted([ROOT / name, *(ROOT / name).rglob("*")])]
    content = (
        part
        for path in files
        if path.is_file() and "__pycache__" not in path.parts
        for part in (str(path.relative_to(ROOT)).encode(), path.read_bytes())
    )
    folder = CACHE / f"deb-{digest(content)}"
    with locked("deb"):
        if not folder.is_dir():
            for old in CACHE.glob("deb-*"):
                shutil.rmtree(old)
            unfinished = CACHE / "unfinished-deb"
            shutil.rmtree(unfinished, ignore_errors=True)
            # Less compression: the file is unpacked a minute later.
            environment = {**os.environ, "DEB_LEVEL": "1"}
            command = [*ENDS_WITH_US, str(ROOT / "systemd" / "deb" / "build"), str(unfinished)]
            subprocess.run(command, check=True, timeout=BUILD_S, env=environment, stdout=subprocess.DEVNULL)
            unfinished.rename(folder)
    return next(folder.glob("*.deb"))


def variant(package: Path, folder: Path, version: str, *, fault: str = "") -> Path:
    """The same package under another version. ``fault``: "import" = cannot be imported, "start" = ends before ready."""
    name, _, rest = package.name.partition("_")
    release = rest.partition("~")[2]
    target = folder / f"{name}_{version}~{release}"
    stage = folder / f"stage-{version}"
    subprocess.run(["dpkg-deb", "-R", str(package), str(stage)], check=True)
    old = next((stage / "opt" / "aoabridge").iterdir())
    if old.name != version:
        old.rename(old.with_name(version))
    module = next((stage / "opt" / "aoabridge").glob("*/lib/python3*/site-packages/aoabridge"))
    for script in (*(stage / "DEBIAN").glob("p*"), stage / "DEBIAN" / "control"):
        script.write_text(script.read_text().replace(old.name, version))
    (stage / "DEBIAN" / "md5sums").unlink()
    _edit(module / "__init__.py", old.name, version)
    if fault == "import":
        _edit(module / "values.py", "", "import msgspec_is_missing\n")
    elif fault == "start":
        _edit(module / "daemon" / "run.py", "    settings = start.config.log\n", "    raise SystemExit(70)\n")
    command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(stage), str(target)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(stage)
    return target


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, f"{path.name} has no {old!r}"
    path.write_text(text.replace(old, new, 1))
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()  # bytecode of the package is not compared with its source


if __name__ == "__main__":
    print(base_tree())
    print(product())
