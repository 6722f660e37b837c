"""``./dev vm``: makes the image, boots it, judges the console, and says what each step took.

    python tests/vm/run.py [--short] [--prepare] [--fresh]

--short leaves out what takes an emulated machine minutes: upgrades, a second installation, the gadget stack. --prepare
only fetches and builds what the image is made of; --fresh throws away what earlier runs left of that. Needs root. A
boot has passed only if its console holds exactly one line ``RESULT rc=0``; the console is kept below ``.cache/vm``.
"""

import argparse
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from vm.tree import CACHE, base_tree, forget, locked, product, variant

HERE = Path(__file__).resolve().parent
KERNEL_META = "linux-image-amd64"
KERNEL_S, IMAGE_S = 300, 120
SHORT_S, FULL_S = 400, 600  # hard limits of a boot: twice what a busy machine takes
SHOWN_LINES = 80  # of the console of a failed boot
QEMU = (
    *("qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max", "-smp", "2"),
    *("-m", "768", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"),
)
# The kernel does not trust the time stamp counter of an emulated processor; reading any other clock is far slower.
COMMAND_LINE = (
    "console=ttyS0 root=/dev/vda rw mitigations=off loglevel=4 random.trust_cpu=on tsc=reliable clocksource=tsc audit=0"
)


class Steps:
    """What took how long."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, float]] = []
        self._began = time.monotonic()

    def add(self, name: str, seconds: float) -> None:
        self._rows.append((name, seconds))

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.add(name, time.monotonic() - began)

    def table(self) -> str:
        rows = [*self._rows, ("everything", time.monotonic() - self._began)]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {seconds:7.1f} s" for name, seconds in rows)


def kernel() -> Path:
    """Debian's kernel package, unpacked; nothing is installed."""
    with locked("kernel"):
        package = kernel_package()
        place = CACHE / package
        if not place.is_dir():
            unfinished = CACHE / "unfinished-kernel"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            command = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package]
            subprocess.run(command, cwd=unfinished, check=True, timeout=KERNEL_S, stdout=subprocess.DEVNULL)
            file = next(unfinished.glob("*.deb"))
            subprocess.run(["dpkg-deb", "-x", str(file), str(unfinished)], check=True, timeout=KERNEL_S)
            file.unlink()
            version = next((unfinished / "lib" / "modules").iterdir()).name
            subprocess.run(["depmod", "-b", str(unfinished), version], check=True, timeout=KERNEL_S)
            unfinished.rename(place)
    return place


def kernel_package() -> str:
    """The one that Debian's name for "the newest" stands for; a machine without package lists gets them."""
    for attempt in range(2):
        command = ["apt-cache", "depends", KERNEL_META]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        if found := re.findall(r"Depends: (linux-image-\S+)", shown):
            return found[0]
        if not attempt:
            subprocess.run(["apt-get", "update", "-qq"], check=True, timeout=KERNEL_S)
    raise SystemExit(f"no package {KERNEL_META} here; the virtual machine needs Debian on amd64")


def prepare(steps: Steps) -> None:
    """Everything that later runs find again, made side by side: each waits for something else."""
    parts: dict[str, Callable[[], Path]] = {"base system": base_tree, "kernel": kernel, "package": product}

    def make(name: str) -> None:
        with steps.timed(f"{name} (side by side)"):
            parts[name]()

    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(make, parts))


def make_image(short: bool) -> Path:
    """The image with the package of the sources as they stand, and its variants for upgrades."""
    packages = CACHE / "packages"
    shutil.rmtree(packages, ignore_errors=True)
    packages.mkdir()
    package = product()
    # Not compressed: an emulated processor would be busy with that for longer than with everything else.
    variant(package, packages, package.name.split("_")[1].split("~")[0])
    if not short:
        variant(package, packages, "7.0.1", fault="import")
        variant(package, packages, "7.0.2", fault="start")
        variant(package, packages, "7.0.3")
    image = CACHE / "image"
    places = (base_tree(), kernel(), packages, HERE.parent)
    command = ["unshare", "--mount", "sh", str(HERE / "image.sh"), *map(str, places)]
    driver = "guest_vm.py --short" if short else "guest_vm.py"
    made = subprocess.run(
        [*command, driver, str(image)],
        check=False,
        timeout=IMAGE_S,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if made.returncode:
        raise SystemExit(f"the image could not be made:\n{made.stdout}")
    shutil.rmtree(packages)
    return image


def boot(image: Path, console: Path, limit_s: float) -> list[tuple[float, str]]:
    """The lines on the console with their times in seconds; the image itself is not changed."""
    kernel_file = next((kernel() / "boot").glob("vmlinuz-*"))
    drive = f"file={image},if=none,id=d0,format=raw,snapshot=on,cache=unsafe"
    command = [
        *("setpriv", "--pdeathsig", "KILL", *QEMU, "-kernel", str(kernel_file), "-initrd", f"{image}.initrd"),
        *("-append", COMMAND_LINE, "-drive", drive, "-device", "virtio-blk-pci,drive=d0"),
    ]
    lines = []
    began = time.monotonic()
    with (
        console.open("wb") as log,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as machine,
    ):
        assert machine.stdout is not None
        limit = threading.Timer(limit_s, machine.kill)
        limit.start()
        for line in machine.stdout:
            log.write(line)
            log.flush()
            lines.append((time.monotonic() - began, line.decode(errors="replace").rstrip()))
        limit.cancel()
        machine.wait()
        ended = time.monotonic() - began
        if ended >= limit_s:
            log.write(f"\nended after {limit_s} s\n".encode())
    return [*lines, (ended, "ended")]


def add_phases(steps: Steps, lines: list[tuple[float, str]]) -> None:
    """Start, cases and end of the machine, by what it wrote."""
    marks = {"kernel and early system": "Welcome to", "start of the system, the service in it": "DRIVER"}
    before = 0.0
    for name, text in marks.items():
        at = next((moment for moment, line in lines if text in line), before)
        steps.add(name, at - before)
        before = at
    for moment, line in lines:
        if match := re.match(r"CASE (\S+) (\S+) ([\d.]+) s", line):
            steps.add(f"  {match[1]} {match[2]}", float(match[3]))
            before = moment
    steps.add("power off", lines[-1][0] - before)


def play(short: bool, steps: Steps) -> bool:
    """One image, one boot; true if it passed."""
    prepare(steps)
    with steps.timed("image"):
        image = make_image(short)
    log = CACHE / ("console-short.txt" if short else "console-full.txt")
    lines = boot(image, log, SHORT_S if short else FULL_S)
    add_phases(steps, lines)
    texts = [text for _, text in lines]
    results = [text for text in texts if text.startswith("RESULT rc=")]
    passed = results == ["RESULT rc=0"] and any(re.match(r"CASE \S+ ok", text) for text in texts)
    if not passed:
        print("\n".join([text for text in texts if "\x1b[K" not in text][-SHOWN_LINES:]))  # without moving stars
    print(steps.table())
    print(f"virtual machine {'passed' if passed else 'FAILED'}; its console: {log}")
    return passed


def main() -> int:
    """0 if every case passed."""
    parser = argparse.ArgumentParser(prog="./dev vm", description="The acceptance in a virtual machine; needs root.")
    parser.add_argument("--short", action="store_true", help="leave out upgrades, a second installation, the gadget")
    parser.add_argument("--prepare", action="store_true", help="only fetch and build what the image is made of")
    parser.add_argument("--fresh", action="store_true", help="throw away first what earlier runs left of that")
    arguments = parser.parse_args()
    steps = Steps()
    with locked("machine"):
        if arguments.fresh:
            forget()
        if arguments.prepare:
            prepare(steps)
            print(steps.table())
            return 0
        return 0 if play(arguments.short, steps) else 1


if __name__ == "__main__":
    sys.exit(main())
