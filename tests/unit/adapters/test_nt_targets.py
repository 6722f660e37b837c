import ipaddress
import socket

import pytest

from aoabridge.adapters import nt_targets
from aoabridge.adapters.nt_targets import NtTarget, has_address, prove_port, require_free_port


@pytest.mark.parametrize(
    ("team", "first"),
    [(1, "10.0.1.2:5810"), (254, "10.2.54.2:5810"), (6458, "10.64.58.2:5810"), (10254, "10.102.54.2:5810")],
)
def test_team_candidates(team: int, first: str) -> None:
    addresses = NtTarget(team=team).addresses()
    assert addresses[0] == first
    assert f"roboRIO-{team}-FRC.local:5810" in addresses


def test_an_address_of_ipv6_keeps_its_port_apart() -> None:
    target = NtTarget(servers=("::1", "[fe80::1]:99"))
    assert target.servers_and_ports() == [("::1", 5810), ("fe80::1", 99)]
    assert target.addresses() == ("[::1]:5810", "[fe80::1]:99")


def test_addresses_of_a_list() -> None:
    assert NtTarget(servers=("a", "b:1"), port=2).addresses() == ("a:2", "b:1")
    assert NtTarget().addresses() == ()


@pytest.mark.parametrize(
    ("found", "expected"),
    [([], False), (["127.0.0.1"], False), (["127.0.0.1", "127.9.9.9"], False), (["127.0.0.1", "10.99.0.1"], True)],
)
def test_has_address(monkeypatch: pytest.MonkeyPatch, found: list[str], expected: bool) -> None:
    monkeypatch.setattr(nt_targets, "_addresses", lambda: [ipaddress.IPv4Address(text) for text in found])
    assert has_address() is expected


def test_loopback_is_among_the_addresses_of_this_machine() -> None:
    assert ipaddress.IPv4Address("127.0.0.1") in nt_targets._addresses()


def test_ports_are_proven() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        prove_port("127.0.0.1", port)
        with pytest.raises(OSError, match="in use"):
            require_free_port("127.0.0.1", port)
    require_free_port("127.0.0.1", port)


def test_port_that_nothing_listens_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nt_targets, "SERVER_UP_S", 0.05)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="refused"):
            prove_port("127.0.0.1", bound.getsockname()[1])
