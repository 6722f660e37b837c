from aoabridge.bridge.settings import AccessSettings, RelaySettings


def test_everything_is_open_but_the_reserved_names_unless_the_file_says_otherwise() -> None:
    access = AccessSettings()
    assert (access.put_allow, access.put_deny) == (("*",), ())
    assert (access.subscribe_allow, access.subscribe_deny) == (("*",), ())


def test_the_default_limits_are_those_of_the_line_protocol() -> None:
    relay = RelaySettings()
    assert relay.max_line_bytes == 1 << 20
    assert (relay.max_subscriptions, relay.put_rate, relay.put_burst) == (2000, 500, 1000)
    assert (relay.sample_lane, relay.error_lines_per_s) == (1000, 20)
