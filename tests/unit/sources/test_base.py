import pytest

from aoabridge.sources.base import MAX_REMEMBERED_SENDERS, SenderFilter


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.1.0.1", True),
        ("::ffff:10.1.0.1", True),
        ("10.2.0.1", False),
        ("192.168.7.7", True),
        ("192.168.7.8", False),
        ("fe80::1%eth0", True),
        ("2001:db8::1", False),
        ("robot.local", False),
        ("", False),
    ],
)
def test_who_is_allowed(host, allowed):
    senders = SenderFilter(("10.1.0.0/16", "192.168.7.7", "fe80::/10"))
    assert senders.allows(host) is allowed
    assert senders.allows(host) is allowed


def test_nobody_but_loopback_without_a_list():
    assert not SenderFilter(()).allows("10.0.0.1")


def test_forged_senders_do_not_add_up():
    senders = SenderFilter(())
    for number in range(3 * MAX_REMEMBERED_SENDERS):
        senders.allows(f"10.0.{number >> 8}.{number & 255}")
    assert len(senders._verdicts) <= MAX_REMEMBERED_SENDERS


def test_a_wrong_network_is_a_value_error():
    with pytest.raises(ValueError, match="nonsense"):
        SenderFilter(("nonsense",))
