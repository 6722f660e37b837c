"""What the daemon costs while next to nothing happens, beside the floor relay in a process of its own.

At such rates the time is not in instructions but in cold memory: so the machine's own price of that stands beside it.
"""

import mmap
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from aoabridge.daemon.calm import QUIET_S
from benchmarks.child import END, child
from benchmarks.floor import FloorRelay
from benchmarks.libusb import CONFIG, cpu_seconds
from benchmarks.phone import BenchPipe
from benchmarks.robot import Robot, robot
from benchmarks.running import Row, as_a_service, wait_until
from rig.daemon_process import DaemonProcess  # the rig is below tests/

IDLE_S: Final = 10.0  # two looks at everything, two state files
TOPICS: Final = 300
SLOW_HZ: Final = 10
NAP_S: Final = 0.5
PAGES: Final = 2_000
SIMULATED: Final = "[devices]\nsimulated = true\n"


def rows() -> list[Row]:
    """Measure everything once: about 70 seconds."""
    as_a_service()
    with robot() as far, tempfile.TemporaryDirectory() as directory:
        far.publish(TOPICS)
        with child(floor, far.port) as cpu_s:
            floor_idle, floor_slow = percent_of(cpu_s), slow_percent(cpu_s, far)
        with DaemonProcess(Path(directory), CONFIG.format(port=far.port) + SIMULATED) as daemon:
            wait_until(lambda: daemon.status()["robot"]["state"] == "connected")
            time.sleep(2 * QUIET_S)
            idle = percent_of(lambda: cpu_seconds(daemon))
            daemon.plug_in().say({"action": "subscribe", "keys": ["/bench/"]})
            slow = slow_percent(lambda: cpu_seconds(daemon), far)
    return [
        ("idle: a page of memory not touched for 0.5 s, of this machine", page_us(), None, "us"),
        ("idle, connected, no traffic: CPU of the floor", floor_idle, None, "%"),
        ("idle, connected, no traffic: CPU", idle, 1.0, "%"),
        ("idle, connected, no traffic: over the floor", idle / floor_idle, None, "x"),
        (f"one phone, {SLOW_HZ} values/s: CPU of the floor", floor_slow, None, "%"),
        (f"one phone, {SLOW_HZ} values/s: CPU", slow, 3.0, "%"),
        (f"one phone, {SLOW_HZ} values/s: over the floor", slow / floor_slow, None, "x"),
    ]


def slow_percent(cpu_s: Callable[[], float], far: Robot) -> float:
    """Percent of a core while a value changes ten times a second."""
    far.stream(SLOW_HZ, 1 / SLOW_HZ)
    time.sleep(2.0)
    percent = percent_of(cpu_s)
    far.still()
    return percent


def percent_of(cpu_s: Callable[[], float]) -> float:
    """Percent of a core over ``IDLE_S``."""
    before_s = cpu_s()
    time.sleep(IDLE_S)
    return 100 * (cpu_s() - before_s) / IDLE_S


def floor(port: int, parent: Connection) -> None:
    """As a ``child``: the floor relay with a silent phone."""
    relay = FloorRelay(BenchPipe(), port)
    relay.open()
    parent.send("open")
    while parent.recv() != END:
        parent.send(time.process_time())
    relay.close()


def page_us() -> float:
    """What the first touch of a page costs after a nap."""
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as memory:
        for page in range(PAGES):
            memory[page * mmap.PAGESIZE] = 1
        time.sleep(NAP_S)
        began = time.thread_time()
        for page in range(PAGES):
            memory[page * mmap.PAGESIZE]
        return (time.thread_time() - began) / PAGES * 1e6
