"""``./dev vm``: makes the image, boots it, judges the console.

    python tests/vm/run.py [--short]

Two boots: one with the package in the image, one that installs, upgrades and removes it; with --short the first alone.
Needs root. A boot has passed only if its console holds exactly one line ``RESULT rc=0``; the console is kept below
``.cache/vm``.
"""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from vm.tree import CACHE, base_tree, locked, product, variant

HERE = Path(__file__).resolve().parent
KERNEL_META = "linux-image-amd64"
KERNEL_S, IMAGE_S = 300, 120
SHORT_S, FULL_S = 200, 480  # hard limits of a boot
QEMU = (
    *("qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max", "-smp", "2"),
    *("-m", "768", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"),
)
COMMAND_LINE = "console=ttyS0 root=/dev/vda rw mitigations=off loglevel=4 random.trust_cpu=on"


def kernel() -> Path:
    """Debian's kernel package, unpacked; nothing is installed."""
    shown = subprocess.run(["apt-cache", "depends", KERNEL_META], capture_output=True, text=True, check=True).stdout
    package = re.findall(r"Depends: (linux-image-\S+)", shown)[0]
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
    subprocess.run([*command, driver, str(image)], check=True, timeout=IMAGE_S, stdout=subprocess.DEVNULL)
    shutil.rmtree(packages)
    return image


def boot(image: Path, console: Path, limit_s: float) -> str:
    """The text on the console; the image itself is not changed."""
    kernel_file = next((kernel() / "boot").glob("vmlinuz-*"))
    drive = f"file={image},if=none,id=d0,format=raw,snapshot=on,cache=unsafe"
    command = [
        *("setpriv", "--pdeathsig", "KILL", *QEMU, "-kernel", str(kernel_file), "-initrd", f"{image}.initrd"),
        *("-append", COMMAND_LINE, "-drive", drive, "-device", "virtio-blk-pci,drive=d0"),
    ]
    with console.open("wb") as log:
        machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            machine.wait(limit_s)
        except subprocess.TimeoutExpired:
            machine.kill()
            machine.wait()
            log.write(f"\nended after {limit_s} s\n".encode())
    return console.read_text(errors="replace")


def play(short: bool) -> bool:
    """One image, one boot; prints the cases; true if it passed."""
    began = time.monotonic()
    image = make_image(short)
    made = time.monotonic()
    log = CACHE / ("console-short.txt" if short else "console-full.txt")
    console = boot(image, log, SHORT_S if short else FULL_S)
    ended = time.monotonic()
    results = re.findall(r"^RESULT rc=\d+", console, re.MULTILINE)
    passed = results == ["RESULT rc=0"] and re.search(r"^CASE \S+ ok", console, re.MULTILINE) is not None
    print("\n".join(re.findall(r"^CASE .*?(?=\r?$)", console, re.MULTILINE)))
    print(f"image {made - began:.0f} s, boot {ended - made:.0f} s, {'passed' if passed else 'FAILED'}; log: {log}")
    return passed


def main(arguments: list[str]) -> int:
    """0 if every case passed."""
    with locked("machine"):
        passed = play(short=True)
        if "--short" not in arguments:
            passed = play(short=False) and passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
