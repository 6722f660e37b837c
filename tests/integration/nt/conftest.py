"""A robot in a process of its own, and a network in which ntcore's client can resolve 127.0.0.1."""

import subprocess
from collections.abc import Iterator

import pytest

from aoabridge.adapters.nt_targets import has_address
from rig.nt_loop import NtLoop
from rig.nt_process import NtProcess


@pytest.fixture(scope="session", autouse=True)
def _address_beside_loopback() -> None:
    if not has_address():  # a machine without network: nothing leaves it through this address either
        subprocess.run(["ip", "addr", "add", "10.99.0.1/32", "dev", "lo"], check=True)


@pytest.fixture
def robot() -> Iterator[NtProcess]:
    with NtProcess.server() as server:
        yield server


@pytest.fixture
def bridge(robot: NtProcess) -> Iterator[NtLoop]:
    with NtLoop(robot.address) as loop:
        loop.until_online()
        yield loop


@pytest.fixture
def witness(robot: NtProcess) -> Iterator[NtProcess]:
    """A second client that sees every value."""
    with NtProcess.client(robot.port) as client:
        # For its first 100 ms a server serves a client at the default period, whatever it subscribed.
        robot.publish("/settle", "int", 1)
        client.wait_value("/settle", 1)
        robot.unpublish("/settle")
        client.wait_topic("/settle", gone=True)
        client.samples.clear()
        yield client
