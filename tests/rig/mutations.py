"""Does each rig detect a broken daemon? Run by hand: `python tests/rig/mutations.py [NAME ...]`.

Every entry breaks one line of a private copy of the tree; the named test must pass on the copy before and fail after.
Exits 1 if a break goes unnoticed. Takes some minutes; not part of the suite.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "dist")
TEST_S = 240


@dataclass(frozen=True)
class Mutation:
    """`old` occurs once in `file` and becomes `new`; `test` must notice."""

    name: str
    file: str
    old: str
    new: str
    test: str


CONVERSATION = "tests/rig/test_main_job.py::test_the_known_apps_conversation"
MUTATIONS = (
    Mutation("no claim", "aoabridge/adapters/usb.py", "        handle.claim(chosen.number)\n", "", CONVERSATION),
    Mutation(
        "wrong string index",
        "aoabridge/phone/aoa.py",
        "SEND_STRING, 0, index, text",
        "SEND_STRING, 0, index + 1, text",
        CONVERSATION,
    ),
    Mutation(
        "read of 100 bytes",
        "aoabridge/phone/aoa.py",
        "IN_READ_BYTES: Final = 16_384",
        "IN_READ_BYTES: Final = 100",
        CONVERSATION,
    ),
    Mutation(
        "close before join",
        "aoabridge/daemon/links.py",
        "        self._join()\n        self.pipe.close()\n",
        "        self.pipe.close()\n        self._join()\n",
        "tests/rig/test_ends.py::test_sigterm_under_traffic[3]",
    ),
    Mutation(
        "pipe never closed",
        "aoabridge/daemon/links.py",
        "        self._join()\n        self.pipe.close()\n",
        "        self._join()\n",
        "tests/rig/test_replug.py::test_unplugged_at_a_random_byte[5]",
    ),
    Mutation(
        "no AF_NETLINK",
        "systemd/aoabridge.service",
        "AF_INET6 AF_NETLINK",
        "AF_INET6",
        "tests/static/test_service_unit.py",
    ),
    Mutation(
        "rule without the accessory ids",  # the vendor is a known maker, so leaving the line out changes little
        "udev/70-aoabridge.rules",
        'ATTR{idProduct}=="2d0[0-5]", GOTO="aoabridge_grant"',
        'ATTR{idProduct}=="2d0[0-5]", GOTO="aoabridge_end"',
        "tests/rig/test_udev_rule.py",
    ),
    Mutation(
        "old presses are published",
        "aoabridge/bridge/dialog.py",
        "        if line.early:\n",
        "        if line.early and False:\n",
        "tests/rig/test_ends.py::test_what_waited_on_the_phone_is_not_pressed_late",
    ),
    Mutation(
        "run pulses stay high",
        "aoabridge/bridge/owners.py",
        "owned.writer == link and owned.value is True and",
        "owned.writer == link and owned.value is False and",
        "tests/rig/test_ends.py::test_sigterm_under_traffic[3]",
    ),
    Mutation(
        "heartbeat for an app that does not read",
        "aoabridge/bridge/core.py",
        "alive = may and any(_shows_the_robot(link, now) for link in self.links.values())",
        "alive = may and any(link.live for link in self.links.values())",
        "tests/rig/test_stopped_reader.py::test_the_app_stops_reading[6]",
    ),
    Mutation(
        "no permission is no issue",
        "aoabridge/phone/ports.py",
        "usb-permission",
        "usb-busy",
        "tests/rig/test_ends.py::test_a_node_that_may_not_be_opened",
    ),
)


def passes(tree, test):
    """Whether the test passes in this copy of the tree; a test that ran into its limit did not."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not soak", test]
    environment = {**os.environ, "PYTHONPATH": str(tree)}  # before the installed package, also for the daemon
    try:
        return (
            subprocess.run(
                command, cwd=tree, env=environment, capture_output=True, check=False, timeout=TEST_S
            ).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False


def detected(mutation, tree):
    """Breaks the line, runs the test, restores the line."""
    file = tree / mutation.file
    text = file.read_text()
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.name}: the line to break is not in {mutation.file} exactly once")
    file.write_text(text.replace(mutation.old, mutation.new))
    try:
        return not passes(tree, mutation.test)
    finally:
        file.write_text(text)


def main(names):
    chosen = [mutation for mutation in MUTATIONS if not names or mutation.name in names]
    missed = []
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
        for test in sorted({mutation.test for mutation in chosen}):
            if not passes(tree, test):
                raise SystemExit(f"{test} fails on the tree as it is")
        for mutation in chosen:
            began = time.monotonic()
            found = detected(mutation, tree)
            print(
                f"{'detected' if found else 'MISSED':9}{mutation.name} ({time.monotonic() - began:.0f} s)", flush=True
            )
            if not found:
                missed.append(mutation.name)
    return 1 if missed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
