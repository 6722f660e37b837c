"""Addresses as people write them."""

import pytest

from aoabridge.codecs.host_port import host_of, join_host_port, split_host_port
from aoabridge.errors import DecodeError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.64.58.2", ("10.64.58.2", 5810)),
        ("robot.local:1234", ("robot.local", 1234)),
        ("host:65535", ("host", 65535)),
        ("host:1", ("host", 1)),
        ("host:", ("host", 5810)),
        ("::1", ("::1", 5810)),
        ("fe80::1%eth0", ("fe80::1%eth0", 5810)),
        ("[fe80::1]", ("fe80::1", 5810)),
        ("[fe80::1]:99", ("fe80::1", 99)),
        ("[fe80::1]:", ("fe80::1", 5810)),
    ],
)
def test_split(text: str, expected: tuple[str, int]) -> None:
    assert split_host_port(text, 5810) == expected


@pytest.mark.parametrize(
    "text",
    ["", ":5810", "host:x", "host:0", "host:65536", "host:-1", "host:+1", "host: 1", "host:1_0", "host:000080",
     "host:٣", "[::1", "[::1]x", "[::1]5", "[]:1", "[host]:1", "[::1]:0", "[127.0.0.1]:1"],
)  # fmt: skip
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(DecodeError):
        split_host_port(text, 5810)


@pytest.mark.parametrize("text", ["host", "::1", "[::1]", "host:", "[::1]:"])
def test_a_port_that_must_be_there(text: str) -> None:
    with pytest.raises(DecodeError, match="names no port"):
        split_host_port(text)


@pytest.mark.parametrize("host", ["10.0.0.2", "robot.local", "::1", "fe80::1%eth0"])
def test_joined_and_split_again(host: str) -> None:
    assert split_host_port(join_host_port(host, 99)) == (host, 99)


@pytest.mark.parametrize(
    ("text", "host"),
    [("10.0.0.2:5810", "10.0.0.2"), ("[::1]:5810", "::1"), ("::1", "::1"), ("a", "a"), ("", ""), ("a:b", "a:b")],
)
def test_the_host_of_an_address(text: str, host: str) -> None:
    assert host_of(text) == host
