"""The way to the robot: chosen, linked, in the right network, answering."""

import socket
import time
from collections.abc import Callable, Iterator, Sequence

from aoabridge.adapters.nt_targets import NtTarget, has_address, split_server
from aoabridge.cli.checks.result import Check, from_issue, passed
from aoabridge.config import Config

__all__ = ["answer_of", "network_checks"]

PATIENCE_S = 1.0  # a robot on the same switch answers in milliseconds
SUBNET = "nt-subnet"


def network_checks(
    config: Config,
    linked: Callable[[], bool] = has_address,
    answer: Callable[[Sequence[tuple[str, int]]], tuple[str, str]] | None = None,
) -> Iterator[Check]:
    """From the setting to the answer; stops at the first broken link of the chain."""
    nt = config.nt
    if nt.embedded:
        yield passed("nt-unset", f"we are the server, on {nt.listen}:{nt.port}")
        return
    if nt.team is None and not nt.server:
        yield from_issue("nt-unset")
        return
    if not linked():
        yield from_issue("nt-no-link")
        return
    if nt.team is not None and not _in_subnet(nt.team):
        yield from_issue(SUBNET, TE=nt.team // 100, AM=nt.team % 100)
    targets = [split_server(text, nt.port) for text in NtTarget(nt.team, nt.server, nt.port).addresses()]
    result, host = (answer or answer_of)(targets)
    if result == "open":
        yield passed("nt-timeout", f"the robot program answers at {host}")
    elif result == "refused":
        yield from_issue("nt-refused", host)
    else:
        yield from_issue("nt-timeout", host=targets[0][0])


def answer_of(targets: Sequence[tuple[str, int]]) -> tuple[str, str]:
    """("open" | "refused" | "silent", host): the best answer of any target within PATIENCE_S in all."""
    best = ("silent", "")
    deadline = time.monotonic() + PATIENCE_S
    for host, port in targets:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            break
        try:
            socket.create_connection((host, port), timeout=left_s / 2).close()
        except ConnectionRefusedError:
            best = ("refused", host)
        except OSError:
            continue
        else:
            return "open", f"{host}:{port}"
    return best


def _in_subnet(team: int) -> bool:
    """True if this machine would reach the robot's network from an address inside it; sends nothing."""
    network = f"10.{team // 100}.{team % 100}."
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((network + "2", 9))
        except OSError:
            return False
        return str(probe.getsockname()[0]).startswith(network)
