"""The cases inside the container: the shipped unit under its service manager, with the phone of the rig outside."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from vm import guest

RIG = "/run/umock/rig.sock"
DROP_IN = """
[Service]
Environment=LD_PRELOAD=libumockdev-preload.so.0 UMOCKDEV_DIR=/run/umock
ReadWritePaths=/run/umock
"""
WATCHDOG_S = 15
ABORT_S = 90


def case_phone_is_served(robot, rig):
    rig.do("plug")
    guest.wait_phone()
    guest.relay_both_ways(robot, rig)


def case_phone_comes_back(robot, rig):
    rig.do("unplug")
    guest.wait("phone gone", lambda: "live" not in guest.phones().values())
    rig.do("plug")
    guest.wait_phone()
    guest.relay_both_ways(robot, rig, topic="/after/replug")


def case_silent_service_is_ended_and_restarted(robot, rig):
    """Stopped, it feeds no watchdog; the stacks of its threads are in the journal."""
    before = int(guest.show("NRestarts"))
    os.kill(guest.main_pid(), signal.SIGSTOP)
    began = time.monotonic()
    guest.wait("restart", lambda: int(guest.show("NRestarts")) == before + 1, WATCHDOG_S + ABORT_S)
    assert time.monotonic() - began > WATCHDOG_S / 2
    guest.wait("active", lambda: guest.show("ActiveState") == "active")
    journal = guest.run("journalctl", "-b", "-u", guest.UNIT, "--no-pager")[1]
    assert "result 'watchdog'" in journal
    assert "Fatal Python error: Aborted" in journal
    guest.wait_phone()
    guest.relay_both_ways(robot, rig, topic="/after/watchdog")


def case_unplugged_while_stopping(rig):
    for _ in range(3):
        guest.wait_phone()
        began = time.monotonic()
        with subprocess.Popen(["systemctl", "stop", guest.UNIT]) as stopping:
            rig.do("unplug")
            assert stopping.wait(20) == 0
        assert time.monotonic() - began <= 2.5
        assert (guest.show("Result"), guest.show("ExecMainStatus")) == ("success", "0")
        rig.do("plug")
        guest.run("systemctl", "start", guest.UNIT)


def case_the_phone_saw_nothing_wrong(rig):
    assert rig.do("stats")["problems"] == []


def main():
    guest.run("ip", "addr", "add", "10.99.0.1/32", "dev", "lo")  # a client of ntcore needs an address
    folder = Path(f"/etc/systemd/system/{guest.UNIT}.d")
    folder.mkdir(parents=True)
    (folder / "umock.conf").write_text(DROP_IN)
    robot, rig = guest.Robot(), guest.Phones(RIG)
    both = (robot, rig)
    with Path("/packages/result.txt").open("w") as out:
        guest.play(
            [
                (guest.case_install_is_ready, ()),
                (guest.case_reload_takes_the_robot, ()),
                (guest.case_sandbox_is_in_force, ()),
                (case_phone_is_served, both),
                (case_phone_comes_back, both),
                (guest.case_killed_service_comes_back, both),
                (guest.case_restart_with_phone_in_accessory_mode, both),
                (case_silent_service_is_ended_and_restarted, both),
                (guest.case_stop_takes_two_seconds, ()),
                (case_unplugged_while_stopping, (rig,)),
                (guest.case_broken_upgrade_keeps_the_running_one, ()),
                (guest.case_upgrade_that_does_not_start_is_taken_back, ()),
                (guest.case_upgrade, ()),
                (case_the_phone_saw_nothing_wrong, (rig,)),
                (guest.case_remove_and_purge, ()),
            ],
            out,
        )


if __name__ == "__main__":
    try:
        main()
    finally:
        subprocess.run(["systemctl", "poweroff", "--no-block"], check=True)
