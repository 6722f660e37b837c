"""An open port, a closed one and a host that says nothing are told apart."""

import socket
import time

import pytest

from aoabridge.adapters.reach import Answer, answer_of, in_robot_network


def test_the_best_answer_of_any_target_counts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        port, closed = server.getsockname()[1], other.getsockname()[1]
        other.close()
        targets = [("127.0.0.1", closed), ("127.0.0.1", port)]
        assert answer_of(targets) == (Answer.OPEN, "127.0.0.1")
        assert answer_of(targets[:1]) == (Answer.REFUSED, "127.0.0.1")
    assert answer_of([]) == (Answer.SILENT, "")
    assert answer_of([("no-such-host.invalid", 1)]) == (Answer.SILENT, "")


def test_a_server_that_accepts_nothing_costs_the_patience_and_no_more() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        queue = [socket.socket() for _ in range(4)]
        for client in queue:
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        began = time.monotonic()
        answer_of([full.getsockname()] * 3, patience_s=0.2)
        assert time.monotonic() - began < 5
        for client in queue:
            client.close()


def test_a_machine_outside_is_told_so() -> None:
    assert not in_robot_network(25599)


@pytest.mark.parametrize("host", ["robot..local", f"{'x' * 64}.local"])
def test_a_name_that_no_resolver_takes_is_silent(host: str) -> None:
    assert answer_of([(host, 1)]) == (Answer.SILENT, "")
