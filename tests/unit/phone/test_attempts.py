import pytest

from aoabridge.errors import UsbError
from aoabridge.phone.attempts import Attempts, Next, refuses


def error(kind: str, step: str) -> UsbError:
    return UsbError(kind, errno=None, kind=kind, step=step, port="1-1")


def waits(attempts: Attempts, failure: UsbError, count: int, *, handshake: bool) -> list[tuple[Next, float]]:
    outcomes = [attempts.after(failure, 0.0, handshake=handshake) for _ in range(count)]
    return [(o.next, o.wait_s) for o in outcomes]


@pytest.mark.parametrize("kind", ["TIMEOUT", "IO", "NO_MEM", "BUSY", "PIPE", "OTHER"])
def test_a_handshake_has_three_attempts(kind: str) -> None:
    assert waits(Attempts(), error(kind, "send_string:1"), 3, handshake=True) == [
        (Next.RETRY, 0.5),
        (Next.RETRY, 1.0),
        (Next.GIVE_UP, 0.0),
    ]


def test_an_interrupted_call_is_repeated_at_once() -> None:
    assert waits(Attempts(), error("INTERRUPTED", "claim"), 3, handshake=False) == [
        (Next.RETRY, 0.0),
        (Next.RETRY, 0.0),
        (Next.GIVE_UP, 0.0),
    ]


@pytest.mark.parametrize(("step", "handshake"), [("open", True), ("open", False), ("claim", False)])
def test_a_busy_device_backs_off(step: str, handshake: bool) -> None:
    attempts = Attempts()
    assert [w for _, w in waits(attempts, error("BUSY", step), 6, handshake=handshake)] == [
        0.2,
        0.5,
        1.0,
        2.0,
        5.0,
        5.0,
    ]
    assert attempts.busy_since == 0.0
    attempts.after(error("TIMEOUT", "claim"), 1.0, handshake=handshake)
    assert attempts.busy_since is None


@pytest.mark.parametrize("kind", ["ACCESS", "NOT_FOUND", "IO"])
def test_open_is_retried_for_two_seconds(kind: str) -> None:
    attempts = Attempts()
    assert attempts.after(error(kind, "open"), 10.0, handshake=False).wait_s == 0.1
    assert attempts.after(error(kind, "open"), 11.9, handshake=False).next is Next.RETRY
    outcome = attempts.after(error(kind, "open"), 12.0, handshake=False)
    assert (outcome.next, outcome.wait_s) == (Next.BLOCKED, 5.0)


def test_a_node_that_is_not_there_yet() -> None:
    attempts = Attempts()
    assert attempts.after(error("NO_DEVICE", "open"), 0.0, handshake=True).next is Next.RETRY
    assert attempts.after(error("NO_DEVICE", "open"), 2.0, handshake=True).next is Next.GONE


def test_a_device_that_leaves_later_is_gone_at_once() -> None:
    assert Attempts().after(error("NO_DEVICE", "claim"), 0.0, handshake=False).next is Next.GONE


def test_other_errors_at_claim_are_for_the_reopen_ladder() -> None:
    assert Attempts().after(error("IO", "claim"), 0.0, handshake=False).next is Next.GIVE_UP


def test_only_the_first_request_can_be_refused() -> None:
    assert refuses(error("PIPE", "get_protocol"))
    assert refuses(error("OVERFLOW", "get_protocol"))
    assert not refuses(error("PIPE", "send_string:0"))
    assert not refuses(error("PIPE", "open"))
