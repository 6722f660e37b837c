"""A robot process with a real NT server: loops in real time, answers commands on stdin with JSON lines.

Usage: nt_robot.py PORT. Its clock starts at zero with the process, as on a roboRIO after a reboot.
"""

import json
import select
import sys
import time
from pathlib import Path

import hal
import ntcore

sys.path.insert(0, str(Path(__file__).parent))
from plan_rig import FakeDrive

from robotlib import DriveSettings, Pose2, RoboRoute, Settings
from robotlib.host import HostState, ManualHost

PERIOD_S = 0.01


class Watched(FakeDrive):
    commands = 0

    def drive(self, vx, vy, omega):
        super().drive(vx, vy, omega)
        self.commands += 1


def main():
    hal.initialize(500, 0)
    instance = ntcore.NetworkTableInstance.create()
    instance.startServer("", "127.0.0.1", 0, int(sys.argv[1]))
    drive = Watched(Pose2(1.0, 2.0, 0.0))
    host = ManualHost(HostState(enabled=True, mode="teleop", alliance="blue"))
    slow = DriveSettings(max_speed_mps=0.5)
    # A machine that is busy with other tests may hold this process up; loop gaps have their own test.
    settings = Settings(max_gap_s=30.0)
    rr = RoboRoute(host=host, drive=drive, drive_settings=slow, settings=settings, instance=instance)
    runs = []
    rr.action(1, "Intake", lambda: runs.append(1))
    print("ready", flush=True)
    last = time.monotonic()
    refusals = []
    while True:
        now = time.monotonic()
        drive.move(now - last)
        last = now
        rr.periodic()
        refusals += [event.text.partition(":")[0] for event in rr.take_events() if event.kind == "refused"]
        if select.select([sys.stdin], [], [], PERIOD_S)[0]:
            command = sys.stdin.readline().strip()
            if not command:
                break
            if command == "start":
                rr.start("auto")
            elif command == "cancel":
                rr.cancel("code")
            elif command == "stop":
                break
            status = rr.status
            answer = {
                "state": status.state,
                "waiting": status.waiting,
                "refused": status.refused,
                "refusals": refusals,
                "plan_id": status.plan_id,
                "retained": status.retained,
                "run_id": status.run_id,
                "link": status.link,
                "error": status.error_code,
                "commands": drive.commands,
                "still": drive.still,
                "cancels": len(rr.control._cancels_us),
                "now": ntcore._now(),
                "reason": rr.control.run.executor.reason if rr.control.run else "",
            }
            print(json.dumps(answer), flush=True)
            refusals = []
    rr.close()
    instance.stopServer()
    ntcore.NetworkTableInstance.destroy(instance)


main()
