"""The same over real libusb: the daemon as a process, phones emulated below the kernel interface, the robot beside.

Every transfer costs about a millisecond in the emulation (an ioctl is a message to another process), so these figures
show that nothing is lost or held up, not how fast a phone can be.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from benchmarks.phone import clock_of
from benchmarks.robot import Robot, robot
from benchmarks.running import Row, percentile, wait_until
from rig.daemon_process import DaemonProcess  # the rig is below tests/
from rig.main_job import TalkingPhones

SECONDS: Final = 2.5
SETTLE_S: Final = 0.3
PUTS: Final = 100
CPUCLOCK_SCHED: Final = 2  # of the kernel's numbers of clocks
CONFIG: Final = '[nt]\nserver = "127.0.0.1"\nport = {port}\n[web]\nenabled = false\n'


def rows() -> list[Row]:
    """Measure everything once: about 20 seconds."""
    with robot() as far:
        far.publish(300)
        with linked(far) as (phones, daemon):
            return [*down_rows(far, phones, daemon), *put_rows(far, phones)]


def down_rows(far: Robot, phones: TalkingPhones, daemon: DaemonProcess) -> list[Row]:
    found: list[Row] = []
    for rate in (1_000, 15_000):
        far.stream(rate, 0.02)
        time.sleep(SETTLE_S)
        far.still()
        time.sleep(SETTLE_S)
        since, cpu_s = phones.count(), cpu_seconds(daemon)
        transfers = reads(phones, since - 1)
        far.stream(rate, 0.02)
        time.sleep(SECONDS)
        sent = far.still()["count"]
        time.sleep(SETTLE_S)
        cpu_s = cpu_seconds(daemon) - cpu_s
        ages, keys = ages_ms(phones, since)
        transfers = reads(phones, phones.count() - 1) - transfers
        name = f"libusb, {rate}/s on 300 topics"
        found += [
            (f"{name}: newest wins over", 100 * (1 - keys / sent), None, "%"),
            (f"{name}: p50", percentile(ages, 0.5), None, "ms"),
            (f"{name}: p99", percentile(ages, 0.99), 30.0 if rate == 1_000 else None, "ms"),
            (f"{name}: daemon CPU per transfer", cpu_s / max(1, transfers) * 1e6, None, "us"),
        ]
    return found


def put_rows(far: Robot, phones: TalkingPhones) -> list[Row]:
    """From the app's write to the robot's listener."""
    far.put_ages_ms()
    for _ in range(PUTS):
        phones.say({"action": "put", "key": "/put/clock", "value": time.monotonic()})
        time.sleep(0.02)
    time.sleep(SETTLE_S)
    ages = far.put_ages_ms()
    return [
        ("libusb, put to robot: lost", 100 * (1 - len(ages) / PUTS), 0.0, "%"),
        ("libusb, put to robot: p50", percentile(ages, 0.5), None, "ms"),
        ("libusb, put to robot: p99", percentile(ages, 0.99), 30.0, "ms"),
    ]


@contextmanager
def linked(far: Robot) -> Iterator[tuple[TalkingPhones, DaemonProcess]]:
    """A daemon that is connected to the robot, with one phone whose app gets all benchmark topics."""
    phones = TalkingPhones({"phones": [{}], "keys": ["/bench/"]})
    variables = [f"{name}={value}" for name, value in phones.environment.items()]
    wrap = ("setpriv", "--pdeathsig", "KILL", "env", *variables)
    daemon = DaemonProcess(phones.directory, CONFIG.format(port=far.port), wrap=wrap)
    try:
        daemon.start()
        phones.do("plug")
        wait_until(lambda: ages_ms(phones, 0)[1] >= 300)
        yield phones, daemon
    finally:
        daemon.stop()
        phones.close()


def ages_ms(phones: TalkingPhones, since: int) -> tuple[list[float], int]:
    """The ages of the values that the app heard, and how many there were."""
    ages = []
    for at, _, text in phones.heard(since=since):
        if text.startswith('{"key":"/bench/'):
            clock = clock_of(json.loads(text)["value"])
            if clock is not None:
                ages.append((at - clock) * 1e3)
    return ages, len(ages)


def reads(phones: TalkingPhones, line: int) -> int:
    """Number of the app's read that brought a line."""
    heard: list[Any] = phones.heard(since=max(0, line))
    return int(heard[0][1]) if heard else 0


def cpu_seconds(daemon: DaemonProcess) -> float:
    """CPU seconds of the daemon so far, by the kernel's clock of its process: /proc counts in steps of 10 ms."""
    return time.clock_gettime(~daemon.process.pid << 3 | CPUCLOCK_SCHED)
