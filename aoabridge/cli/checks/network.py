"""The way to the robot: chosen, linked, in the right network, answering."""

from collections.abc import Callable, Iterator, Sequence

from aoabridge.adapters.nt_targets import NtTarget, has_address
from aoabridge.adapters.reach import Answer, answer_of, in_robot_network
from aoabridge.cli.checks.result import Check, from_issue, passed
from aoabridge.codecs.host_port import split_host_port
from aoabridge.config import Config

__all__ = ["network_checks"]


def network_checks(
    config: Config,
    linked: Callable[[], bool] = has_address,
    answer: Callable[[Sequence[tuple[str, int]]], tuple[Answer, str]] = answer_of,
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
    if nt.team is not None and not in_robot_network(nt.team):
        yield from_issue("nt-subnet", TE=nt.team // 100, AM=nt.team % 100)
    targets = [split_host_port(text, nt.port) for text in NtTarget(nt.team, nt.server, nt.port).addresses()]
    result, host = answer(targets)
    if result is Answer.OPEN:
        yield passed("nt-timeout", f"the robot program answers at {host}")
    elif result is Answer.REFUSED:
        yield from_issue("nt-refused", host)
    else:
        yield from_issue("nt-timeout", host=targets[0][0])
