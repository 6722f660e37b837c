"""The container: the clean tree below an overlay in memory, its own service manager, the phone of a rig outside.

Mounts and processes live in namespaces of their own and end with the process that made them.
"""

import os
import subprocess
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PRELOAD = "libumockdev-preload.so.0"
BOOT_S = 280
CLEAN_S = 10
ENTER = """
set -e
cgroups() { find /sys/fs/cgroup -maxdepth 2 -type d -name 'aoabridge-rig-*'; }
for group in $(cgroups); do # of runs that were killed; one that is in use stays
    [ -d "/proc/${group##*-}" ] || find "$group" -depth -type d -exec rmdir {} ';' 2>/dev/null || true
done
for hierarchy in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
    [ -e "$hierarchy/cgroup.procs" ] || continue
    mkdir "$hierarchy/$1"
    echo $$ > "$hierarchy/$1/cgroup.procs"
done
shift
exec "$@"
"""
SETUP = """
set -e
tree=$1 umock=$2 packages=$3 tests=$4 preload=$5 name=$6
mount -t tmpfs -o size=2g tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o "lowerdir=$tree,upperdir=/mnt/upper,workdir=/mnt/work" overlay /mnt/root
root=/mnt/root
cp "$preload" "$root/usr/lib/"
mkdir "$root/unpacked" "$root/packages" "$root/tests"
for package in "$packages"/*~*.deb; do dpkg-deb -x "$package" "$root/unpacked"; break; done
ln -s /dev/null "$root/etc/systemd/system/console-getty.service"
cat > "$root/etc/systemd/system/driver.service" <<UNIT
[Unit]
After=dbus.service multi-user.target
[Service]
Type=exec
ExecStart=/bin/sh -c 'exec /unpacked/opt/aoabridge/*/bin/python -B /tests/rig/nspawn_guest.py'
StandardOutput=file:/packages/driver.txt
StandardError=inherit
SuccessExitStatus=0
[Install]
WantedBy=multi-user.target
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../driver.service "$root/etc/systemd/system/multi-user.target.wants/driver.service"
exec systemd-nspawn -q -D "$root" --register=no --keep-unit --private-network --machine="$name" \
    --bind="$umock:/run/umock" --bind="$packages:/packages" --bind-ro="$tests:/tests" -b
"""


def preload_library() -> Path:
    """The library that stands between libusb and the kernel."""
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    line = next(line for line in listed.splitlines() if line.strip().startswith(PRELOAD))
    return Path(line.split("=> ")[1])


def boot(tree: Path, umock: Path, packages: Path, log: Path) -> str:
    """Boots, waits for the power-off; what is wrong goes to ``log``; returns the text of the driver's results."""
    isolate = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "UMOCKDEV_DIR")}
    arguments = [str(path) for path in (tree, umock, packages, TESTS, preload_library())]
    name = f"aoabridge-rig-{os.getpid()}"
    command = ["sh", "-c", ENTER, "sh", name, *isolate, "sh", "-c", SETUP, "sh", *arguments, name]
    with log.open("w") as output:
        container = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        try:
            container.wait(BOOT_S)
        except subprocess.TimeoutExpired:
            container.kill()
            container.wait()
        clean_cgroups(name)
    result = packages / "result.txt"
    return result.read_text() if result.exists() else ""


def clean_cgroups(name: str) -> None:
    """The groups of the container outlive its processes, which may still be ending."""
    deadline = time.monotonic() + CLEAN_S
    while groups := list(Path("/sys/fs/cgroup").glob(f"*/{name}")):
        assert time.monotonic() < deadline, groups
        for group in groups:
            command = ["find", str(group), "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"]
            subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
