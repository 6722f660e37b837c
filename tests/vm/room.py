"""A root file system to break: an overlay in memory over a tree that is not touched, with its own processes and no net.

The mounts are in a namespace of their own and the processes end with the one that made it, so nothing is left behind,
however a run ends.
"""

import subprocess
from pathlib import Path
from typing import Self

SETUP = """
set -e
mount -t tmpfs -o size=2g tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o "lowerdir=$1,upperdir=/mnt/upper,workdir=/mnt/work" overlay /mnt/root
mount -t proc proc /mnt/root/proc
mount -t sysfs -o ro sysfs /mnt/root/sys
mount -t tmpfs tmpfs /mnt/root/run
for node in null zero full random urandom; do
    touch "/mnt/root/dev/$node"
    mount --bind "/dev/$node" "/mnt/root/dev/$node"
done
mkdir /mnt/root/packages
ip link set lo up
echo ready
exec cat
"""
COMMAND_S = 120
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": SEARCHED, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


class Room:
    """``run`` executes in the file system; ``path`` sees it from outside."""

    def __init__(self, tree: Path) -> None:
        isolate = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
        self._keeper = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *isolate, "sh", "-c", SETUP, "sh", str(tree)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == "ready\n", "the room could not be made; it needs root"
        inside = Path(f"/proc/{self._keeper.pid}/task/{self._keeper.pid}/children").read_text().split()[0]
        self._enter = ("nsenter", "--target", inside, "--mount", "--net", "--pid")
        self._root = Path(f"/proc/{inside}/root/mnt/root")

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """The result; output of both streams in ``stdout``."""
        done = subprocess.run(
            [*self._enter, "chroot", "/mnt/root", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=ENVIRONMENT,
            timeout=COMMAND_S,
        )
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
        return done

    def install(self, package: Path, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """``dpkg -i``."""
        (self.path("/packages") / package.name).write_bytes(package.read_bytes())
        done = self.run("dpkg", "-i", f"/packages/{package.name}", check=check)
        (self.path("/packages") / package.name).unlink()
        return done

    def path(self, name: str) -> Path:
        """A file as it is seen from outside; do not follow absolute links in it."""
        return self._root / name.lstrip("/")

    def close(self) -> None:
        """The end of everything in it."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.wait()
        self._keeper.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
