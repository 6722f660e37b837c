"""A robot and a dashboard in processes of their own, and the real relay between them and phones in memory."""

import subprocess
from collections.abc import Iterator

import pytest

from aoabridge.adapters.nt_targets import has_address
from aoabridge.bridge.core import CoreSettings
from aoabridge.bridge.settings import RelaySettings
from rig.nt_process import NtProcess
from rig.relay_thread import Phone, RelayThread


@pytest.fixture(scope="session")
def address_beside_loopback() -> None:
    if not has_address():  # ntcore's client resolves nothing on a host that has only loopback addresses
        subprocess.run(["ip", "addr", "add", "10.99.0.1/32", "dev", "lo"], check=True)


@pytest.fixture
def robot(address_beside_loopback: None) -> Iterator[NtProcess]:
    with NtProcess.server() as server:
        yield server


@pytest.fixture
def bridge(robot: NtProcess) -> Iterator[RelayThread]:
    patient = CoreSettings(relay=RelaySettings(error_lines_per_s=1000))  # whole tables of refusals in a second
    with RelayThread(robot.address, patient) as thread:
        yield thread


@pytest.fixture
def phone(bridge: RelayThread) -> Phone:
    return bridge.phone()


@pytest.fixture
def witness(robot: NtProcess) -> Iterator[NtProcess]:
    """A second client that sees every value, as a dashboard would."""
    with NtProcess.client(robot.port) as client:
        robot.publish("/settle", "int", 1)
        client.wait_value("/settle", 1)
        yield client
