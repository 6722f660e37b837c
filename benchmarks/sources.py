"""What a received datagram costs, from the socket to the set on NetworkTables: the FRC source on both robot links."""

import contextlib
import multiprocessing
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from aoabridge.simulators.ds import DriverStation, DsSettings, RobotLink
from aoabridge.simulators.rio import RobotEnd
from benchmarks.bare_source import bare_source
from benchmarks.child import child
from benchmarks.libusb import CONFIG, cpu_seconds
from benchmarks.robot import robot
from benchmarks.running import Row, as_a_service, wait_until
from rig.daemon_process import DaemonProcess  # the rig is below tests/

SPAN_S: Final = 3.0  # six looks at everything
SPANS: Final = 3
HZ: Final = 50
LINKS: Final = 2
LIMIT_PERCENT: Final = 2.0
OVER_BARE: Final = 2.5  # decoding, 22 values compared with those before, counters, what phones may ask for
SOURCE: Final = '[sources]\nfrc = {{ enabled = true, listen = ["ds2rio-udp:{down}", "rio2ds-udp:{up}"] }}\n'


def rows() -> list[Row]:
    """Measure once: about 45 seconds."""
    as_a_service()
    down, up = free_udp_ports(2)
    with robot() as server, tempfile.TemporaryDirectory() as directory:
        with child(bare_source, (down, up), server.port) as cpu_s:
            bare = above_idle(cpu_s, down, up)
        config = CONFIG.format(port=server.port) + SOURCE.format(down=down, up=up)
        with DaemonProcess(Path(directory), config) as daemon:
            wait_until(lambda: daemon.status()["robot"]["state"] == "connected")
            busy = above_idle(lambda: cpu_seconds(daemon), down, up)
    return [
        ("both robot links at 50 Hz: CPU above idle", busy, LIMIT_PERCENT, "%"),
        ("both robot links at 50 Hz: CPU above idle of a bare receiver and publisher", bare, None, "%"),
        ("both robot links at 50 Hz: over a bare receiver and publisher", busy / bare, OVER_BARE, "x"),
        ("received datagram to NT publish, process CPU", busy / 100 / (HZ * LINKS) * 1e6, None, "us"),
    ]


def free_udp_ports(count: int) -> list[int]:
    """Different ones, that nobody holds now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(count)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]


def above_idle(cpu_s: Callable[[], float], down: int, up: int) -> float:
    """Percent of a core that both links cost a process whose CPU seconds are told, beyond what it costs without.

    The smallest of some spans each: other work on the machine only adds.
    """
    idle = min(percent_of(cpu_s) for _ in range(SPANS))
    sender = multiprocessing.get_context("spawn").Process(target=send, args=(down, up, 60.0))
    sender.start()
    try:
        time.sleep(1.5)
        return min(percent_of(cpu_s) for _ in range(SPANS)) - idle
    finally:
        sender.terminate()
        sender.join()


def percent_of(cpu_s: Callable[[], float]) -> float:
    """Percent of a core over a span."""
    before_s, began = cpu_s(), time.monotonic()
    time.sleep(SPAN_S)
    return 100 * (cpu_s() - before_s) / (time.monotonic() - began)


def send(down: int, up: int, seconds: float) -> None:
    """A driver station and its robot, 50 datagrams per second each."""
    began = now = time.monotonic()
    link = RobotLink(DriverStation(DsSettings(), now), now)
    end = RobotEnd(now)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        while now - began < seconds:
            now = time.monotonic()
            link.on_tick(now)
            for data in link.take_datagrams():
                sock.sendto(data, ("127.0.0.1", down))
                end.on_datagram(data, now)
            for data in end.take_datagrams():
                sock.sendto(data, ("127.0.0.1", up))
                link.on_datagram(data)
            time.sleep(max(0.001, link.next_deadline(now) - time.monotonic()))
