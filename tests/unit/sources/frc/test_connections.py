"""Links and connections of the driver station source: how they begin, how they end, whose they are."""

from aoabridge.sources.frc import FrcSettings, FrcSource
from aoabridge.sources.settings import StaleFrc
from fakes.frc_source import CMD, DS, DS_TCP, FMS, FMS_TCP, RIO, RIO_TCP, SENDER, Bench, cmd, ds, fms


def test_silence_first_disconnects_then_withdraws():
    bench = Bench(CMD, RIO, stale_ms=StaleFrc(fms=1000, robot=250), forget_s=2.0)
    bench.datagram(CMD, cmd(1), 10.0)
    bench.tick(10.0)
    assert bench.topics["Link/ds2rio-udp/Connected"] is True
    assert bench.topics["Link/rio2ds-udp/Connected"] is False
    due = bench.source.next_deadline(10.0)
    assert due == 10.25
    bench.tick(10.2)
    assert bench.topics["Link/ds2rio-udp/Connected"] is True
    bench.tick(10.25)
    assert bench.topics["Link/ds2rio-udp/Connected"] is False
    assert "Command/Enabled" in bench.topics
    bench.tick(11.99)
    assert bench.withdrawn == []
    bench.tick(12.0)
    assert not [name for name in bench.topics if not name.startswith("Link/")]
    assert bench.topics["Link/ds2rio-udp/Received"] == 1
    bench.datagram(CMD, cmd(2), 13.0)
    assert bench.topics["Command/Enabled"] is False
    assert bench.topics["Link/ds2rio-udp/Connected"] is True


def test_a_silent_udp_link_does_not_live_on_its_stream():
    bench = Bench(FMS, FMS_TCP, forget_s=2.0)
    bench.source.on_connection(FMS_TCP, 1, SENDER, 1.0)
    bench.stream(FMS_TCP, 1, "000614044341534a", 1.0)
    bench.datagram(FMS, fms(control=4), 1.0)
    bench.tick(3.5)
    assert "Fms/Enabled" not in bench.topics
    assert bench.topics["Fms/EventCode"] == "CASJ"
    bench.source.on_connection(FMS_TCP, 1, None, 10.0)
    bench.tick(11.9)
    assert "Fms/EventCode" in bench.topics
    bench.tick(12.0)
    assert "Fms/EventCode" not in bench.topics
    assert bench.topics["Link/fms2ds-tcp/Connected"] is False


def test_teams_each_have_their_subtree_up_to_a_limit():
    bench = Bench(DS, max_teams=2)
    for team in (1, 2, 3):
        bench.datagram(DS, ds(team), 1.0)
    assert {name.split("/")[1] for name in bench.topics if name.startswith("Ds/")} == {"1", "2"}
    assert bench.source.counters["ds2fms-udp/Received"] == 3
    bench.tick(7.0)
    bench.datagram(DS, ds(3, 1), 7.0)
    assert {name.split("/")[1] for name in bench.topics if name.startswith("Ds/")} == {"3"}


def test_a_second_connection_of_a_team_replaces_the_first():
    bench = Bench(DS_TCP)
    for number in (1, 2):
        bench.source.on_connection(DS_TCP, number, SENDER, 1.0)
        bench.stream(DS_TCP, number, "00031805df", 1.0)
    bench.stream(DS_TCP, 1, "00021b61", 1.1)
    assert "Ds/1503/ChallengeResponse" not in bench.topics
    bench.stream(DS_TCP, 2, "00021b62", 1.1)
    assert bench.topics["Ds/1503/ChallengeResponse"] == "b"
    bench.source.on_connection(DS_TCP, 1, None, 2.0)
    bench.tick(20.0)
    assert bench.topics["Ds/1503/ChallengeResponse"] == "b"
    bench.source.on_connection(DS_TCP, 2, None, 21.0)
    bench.tick(26.0)
    assert "Ds/1503/ChallengeResponse" not in bench.topics


def test_team_of_a_2027_hello():
    bench = Bench(DS_TCP)
    bench.stream(DS_TCP, 1, "000a1ec35001053130303031", 1.0)
    assert bench.topics["Ds/10001/Generation"] == "2027"
    bench.stream(DS_TCP, 2, "000a1ec35001053939393939", 1.0)
    assert bench.topics["Ds/0/UdpPort"] == 50000


def test_unfinished_frames_close_their_connection():
    bench = Bench(RIO_TCP)
    bench.source.on_connection(RIO_TCP, 4, SENDER, 1.0)
    bench.stream(RIO_TCP, 4, "0000", 1.0)
    bench.tick(50.0)
    assert bench.source.take_closures() == []
    bench.stream(RIO_TCP, 4, "00", 51.0)
    bench.stream(RIO_TCP, 4, "03", 54.0)
    bench.tick(55.9)
    assert bench.source.take_closures() == []
    assert bench.source.next_deadline(55.9) == 56.0
    bench.tick(56.0)
    assert bench.source.take_closures() == [(RIO_TCP, 4)]
    assert bench.topics["Link/rio2ds-tcp/Connected"] is False
    assert bench.source.counters["rio2ds-tcp/Truncated"] == 1
    bench.stream(RIO_TCP, 4, "0003006869", 56.1)
    assert "Robot/Console/Message" not in bench.topics
    bench.source.on_connection(RIO_TCP, 4, None, 56.2)
    bench.source.on_connection(RIO_TCP, 4, SENDER, 57.0)
    bench.stream(RIO_TCP, 4, "0003006869", 57.0)
    assert bench.topics["Robot/Console/Message"] == "hi"


def test_a_frame_that_waited_does_not_revive_its_connection():
    bench = Bench(DS_TCP, max_rate=1, forget_s=2.0)
    bench.source.on_connection(DS_TCP, 1, SENDER, 1.0)
    bench.stream(DS_TCP, 1, "0000" + "00031805df", 1.0)
    bench.source.on_connection(DS_TCP, 1, None, 1.1)
    bench.tick(2.0)
    bench.tick(10.0)
    assert not [name for name in bench.topics if name.startswith("Ds/")]
    assert bench.topics["Link/ds2fms-tcp/Connected"] is False
    assert bench.source.next_deadline(10.0) == 11.0


def test_foreign_peers_are_closed():
    bench = Bench(RIO_TCP)
    bench.source.on_connection(RIO_TCP, 4, ("10.0.0.9", 1), 1.0)
    bench.stream(RIO_TCP, 4, "0003006869", 1.0)
    assert bench.source.take_closures() == [(RIO_TCP, 4)]
    assert "Robot/Console/Message" not in bench.topics
    assert bench.source.counters["rio2ds-tcp/Rejected"] == 1


def test_the_only_thing_ever_sent_is_the_keepalive_of_a_console():
    key = "rio2ds-tcp@10.64.58.2:1740"
    source = FrcSource(FrcSettings(listen=(FMS, DS, CMD, RIO, FMS_TCP, DS_TCP), connect=(key,)), "bench")
    endpoint = source.endpoints()[-1]
    assert (endpoint.direction, endpoint.host, endpoint.port, endpoint.kind) == ("connect", "10.64.58.2", 1740, "tcp")
    for udp in (FMS, DS, CMD, RIO):
        source.on_datagram(udp, bytes(22), SENDER, 1.0)
    for number, tcp in enumerate((FMS_TCP, DS_TCP)):
        source.on_connection(tcp, number, SENDER, 1.0)
        source.on_stream(tcp, number, bytes.fromhex("0000" + "00031805df"), 1.0)
    source.on_tick(1.0)
    assert source.take_datagrams() == []
    source.on_connection(key, 9, ("10.64.58.2", 1740), 2.0)
    keepalive = (key, b"\0\0", ("10.64.58.2", 1740))
    assert source.take_datagrams() == [keepalive]
    source.on_tick(3.9)
    assert source.take_datagrams() == []
    source.on_tick(4.0)
    assert source.take_datagrams() == [keepalive]
    source.on_connection(key, 9, None, 5.0)
    source.on_tick(9.0)
    assert source.take_datagrams() == []
