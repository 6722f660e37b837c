"""What a received datagram costs, from the socket to the set on NetworkTables: the FRC source on both robot links."""

import multiprocessing
import socket
import time
from typing import Final

import msgspec

from aoabridge.config.sections import SourcesSettings
from aoabridge.simulators.ds import DriverStation, DsSettings, RobotLink
from aoabridge.simulators.rio import RobotEnd
from aoabridge.sources.settings import FrcSettings
from benchmarks.robot import free_port, robot
from benchmarks.running import RunningBridge, cpu_percent

SECONDS: Final = 5.0
HZ: Final = 50
LINKS: Final = 2
LIMIT_PERCENT: Final = 2.0
Row = tuple[str, float, float | None, str]


def rows() -> list[Row]:
    """Measure once: about 15 seconds."""
    down, up = free_port(), free_port()
    frc = FrcSettings(enabled=True, name="bench", listen=(f"ds2rio-udp:{down}", f"rio2ds-udp:{up}"))
    with robot() as server:
        subject = RunningBridge(
            server.port, (), change=lambda config: msgspec.structs.replace(config, sources=SourcesSettings(frc=(frc,)))
        )
        subject.start()
        sender = multiprocessing.get_context("spawn").Process(target=send, args=(down, up, 3 * SECONDS))
        try:
            idle = cpu_percent(SECONDS)
            sender.start()
            time.sleep(1.0)
            busy = cpu_percent(SECONDS)
        finally:
            sender.terminate()
            sender.join()
            subject.stop()
    cost_us = (busy - idle) / 100 / (HZ * LINKS) * 1e6
    return [
        ("both robot links at 50 Hz: CPU above idle", busy - idle, LIMIT_PERCENT, "%"),
        ("received datagram to NT publish, process CPU", cost_us, None, "us"),
    ]


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


if __name__ == "__main__":
    for row in rows():
        print(row)
