"""Behaviour of the remote-driving source in virtual time."""

import json
from pathlib import Path

import pytest

from aoabridge.codecs import teleop
from aoabridge.codecs.teleop import Downlink, HomeCtrl, HomeTrigger, Uplink
from aoabridge.codecs.wpistruct import SchemaRegistry
from aoabridge.sources.settings import StaleTeleop, TeleopSettings
from aoabridge.sources.teleop import TeleopSource
from aoabridge.sources.teleop_topics import SCHEMAS
from aoabridge.values import Withdrawal

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "teleop_vectors.json").read_text())
SENDER = ("127.0.0.1", 4000)
UP, CTRL, TRIGGER, DOWN = "uplink:10010", "ctrl:10015", "trigger:10013", "downlink:9200"


def uplink(vehicle=10, state=0, sign=0, info=0, speed=500, **more):
    values = {"longitude": 116_000_000, "latitude": 4_000_000_000, "heading": 9050, "steering": -4550}
    values |= {"rpm": 1480, "unused0": 0} | more
    return teleop.encode(
        Uplink(
            vehicle,
            state,
            values["longitude"],
            values["latitude"],
            values["heading"],
            speed,
            values["steering"],
            sign,
            info,
            values["rpm"],
            values["unused0"],
        )
    )


def downlink(vehicle=10, pedal=35, sign=1):
    return teleop.encode(Downlink(vehicle, 1500, pedal, 0, sign, 0, -4550))


def ctrl(vehicle=10, steering=4550):
    return teleop.encode(HomeCtrl(vehicle, steering, 1500, 35, 0, 5))


class Bench:
    def __init__(self, **options):
        self.source = TeleopSource(TeleopSettings(**options), "bench")
        self.topics, self.types, self.withdrawn, self.log, self.schemas = {}, {}, [], [], {}

    def take(self):
        for item in self.source.take_publications():
            name = item.topic.removeprefix("/Teleop/bench/")
            if isinstance(item, Withdrawal):
                self.withdrawn.append(name)
                del self.topics[name]
            elif name.startswith("/.schema/struct:"):
                self.schemas[name.removeprefix("/.schema/struct:")] = item
            else:
                self.topics[name], self.types[name] = item.value, item.type
                self.log.append(item)

    def datagram(self, key, data, now, sender=SENDER):
        self.source.on_datagram(key, data, sender, now)
        self.take()

    def tick(self, now):
        self.source.on_tick(now)
        self.take()

    def history(self, name):
        return [item.value for item in self.log if item.topic == f"/Teleop/bench/{name}"]


def test_schemas_have_the_sizes_of_the_wire():
    registry = SchemaRegistry()
    for name, text in SCHEMAS.items():
        registry.add(name, text)
    assert [registry.codec(name).size for name in SCHEMAS] == [32, 20, 18, 6]


def test_uplink_topics():
    bench = Bench()
    data = uplink(state=1, sign=1, info=1)
    bench.datagram(UP, data, 1.0)
    topics = {name: value for name, value in bench.topics.items() if "Link/" not in name}
    assert topics == {
        "00A/Uplink": data,
        "00A/VehicleState": "fault",
        "00A/Control": "remote",
        "00A/ControlInfo": "takeover_request",
        "00A/Fault": True,
        "00A/RemoteControlled": True,
        "00A/TakeoverRequested": True,
        "00A/Raw/Longitude": 116_000_000,
        "00A/Raw/Latitude": 4_000_000_000,
        "00A/Raw/Heading": 9050,
        "00A/Raw/Speed": 500,
        "00A/Raw/Steering": -4550,
        "00A/Raw/Rpm": 1480,
    }
    assert bench.types["00A/Uplink"] == "struct:TeleopUplink"
    assert bench.types["00A/Raw/Longitude"] == "int"
    registry = SchemaRegistry()
    registry.add("TeleopUplink", bench.schemas["TeleopUplink"].value)
    assert registry.codec("TeleopUplink").decode(data) == teleop.to_fields(teleop.decode(data))


def test_physical_topics_only_with_factors():
    scale = {"speed_kmh": 0.01, "steering_deg": 0.01, "heading_deg": 0.01, "position_deg": 1e-6}
    bench = Bench(scale=scale, downlink_ports=(9200,), signed_position=True)
    for key, data in ((UP, uplink()), (DOWN, downlink()), (CTRL, ctrl())):
        bench.datagram(key, data, 1.0)
    expected = {
        "00A/Speed_kmh": 5.0,
        "00A/Steering_deg": -45.5,
        "00A/Heading_deg": 90.5,
        "00A/Longitude_deg": 116.0,
        "00A/Latitude_deg": (4_000_000_000 - 2**32) * 1e-6,
        "00A/Command/Speed_kmh": 15.0,
        "00A/Command/Steer_deg": -45.5,
        "Cockpit/Speed_kmh": 15.0,
        "Cockpit/Steering_deg": 45.5,
    }
    scaled = {name: value for name, value in bench.topics.items() if name.endswith(("_kmh", "_deg"))}
    assert scaled == pytest.approx(expected)
    assert all(bench.types[name] == "double" for name in scaled)
    assert bench.topics["00A/Raw/Latitude"] == 4_000_000_000
    unsigned = Bench(scale={"position_deg": 1e-6})
    unsigned.datagram(UP, uplink(), 1.0)
    assert unsigned.topics["00A/Latitude_deg"] == pytest.approx(4000.0)
    assert "00A/Speed_kmh" not in unsigned.topics


def test_downlink_topics_only_where_downlinks_are_watched():
    bench = Bench(downlink_ports=(9200,))
    bench.datagram(DOWN, downlink(), 1.0)
    topics = {name: value for name, value in bench.topics.items() if "Link/" not in name}
    assert topics == {
        "00A/Downlink": downlink(),
        "00A/Command/Speed": 1500,
        "00A/Command/Steer": -4550,
        "00A/Command/AccPedal_pct": 35,
        "00A/Command/BrakePedal_pct": 0,
        "00A/Command/Remote": True,
    }
    assert bench.topics["00A/Link/DownlinkConnected"] is True
    blind = Bench()
    blind.datagram(UP, downlink(), 1.0)
    assert blind.topics == {}
    assert blind.source.counters["WrongPort"] == 1


def test_cockpit_topics():
    bench = Bench(vehicle_names={"00B": "truck2"})
    bench.datagram(CTRL, ctrl(), 1.0)
    topics = {name: value for name, value in bench.topics.items() if "Link/" not in name}
    assert topics == {
        "Cockpit/Ctrl": ctrl(),
        "Cockpit/Steering": 4550,
        "Cockpit/Speed": 1500,
        "Cockpit/AccPedal_pct": 35,
        "Cockpit/BrakePedal_pct": 0,
        "Cockpit/PingTime": 5,
        "Cockpit/ObservedVehicle": "00A",
    }
    for index, (vehicle, name) in enumerate(((0, "none"), (11, "truck2"), (13, "unknown(13)"), (-1, "unknown(-1)"))):
        bench.datagram(CTRL, ctrl(vehicle), 2.0 + index)
        assert bench.topics["Cockpit/ObservedVehicle"] == name


def test_every_trigger_counts():
    bench = Bench()
    for state in (1, 1, 2, 7):
        bench.datagram(TRIGGER, teleop.encode(HomeTrigger(state)), 1.0)
    assert len(bench.history("Cockpit/Trigger")) == 4
    assert bench.topics["Cockpit/TriggerState"] == "unknown(7)"
    assert bench.topics["Cockpit/TriggerCount"] == 4
    assert all(item.keep_all for item in bench.log if item.topic.endswith("/Trigger"))
    bench.tick(100.0)
    assert bench.topics["Cockpit/TriggerCount"] == 4


def test_rate_and_edges():
    bench = Bench(publish_hz=8)
    for index in range(20):
        bench.datagram(UP, uplink(speed=index, sign=int(index == 7)), 1 + index / 64)
    assert bench.history("00A/Raw/Speed") == [0, 7, 8, 16]
    assert bench.history("00A/RemoteControlled") == [False, True, False]
    bench.tick(1.34)
    assert bench.history("00A/Raw/Speed")[-1] == 16
    assert bench.source.next_deadline(1.34) == 1.375
    bench.tick(1.375)
    assert bench.history("00A/Raw/Speed")[-1] == 19
    every = Bench(publish_hz=0)
    for _ in range(5):
        every.datagram(UP, uplink(), 1.0)
    assert len(every.history("00A/Uplink")) == 5


def test_copies_are_the_same_octets_in_order_also_of_unlisted_vehicles():
    bench = Bench(forward_ui="127.0.0.1:10010", forward_panosim="10.130.210.63:10012", port=9110)
    sent = [uplink(speed=1), uplink(vehicle=99), uplink(speed=1)]
    for data in sent:
        bench.datagram("uplink:9110", data, 1.0)
    expected = []
    for data in sent:
        expected.append(("forward_ui", data, ("127.0.0.1", 10010)))
        expected.append(("forward_panosim", data, ("10.130.210.63", 10012)))
    assert bench.source.take_datagrams() == expected
    assert bench.source.take_datagrams() == []
    counters = bench.source.counters
    assert (counters["ForwardedUI"], counters["ForwardedPanoSim"], counters["UnknownVehicle"]) == (3, 3, 1)
    assert counters["Check/unknown_vehicle"] == 1
    assert not [name for name in bench.topics if name.startswith(("063", "99"))]
    bench.source.on_send_failed("forward_ui", 1.0)
    assert bench.source.counters["ForwardErrors"] == 1


def test_what_is_refused_is_neither_forwarded_nor_published():
    bench = Bench(forward_ui="127.0.0.1:10010", port=9110, allow_from=())
    cases = [
        (uplink()[:31], "Truncated"),
        (uplink() + b"\0", "BadLength"),
        (b"\0" * 32, "BadMagic"),
        (downlink(), "WrongPort"),
        (ctrl(), "WrongPort"),
    ]
    for data, counter in cases:
        before = bench.source.counters[counter]
        bench.datagram("uplink:9110", data, 1.0)
        assert bench.source.counters[counter] == before + 1
    bench.datagram("uplink:9110", uplink(), 1.0, ("10.0.0.1", 5))
    assert bench.source.counters["ForeignSource"] == 1
    assert bench.source.counters["Received"] == len(cases)
    assert bench.source.take_datagrams() == []
    assert bench.topics == {}
    bench.tick(1.0)
    assert bench.topics["Link/LastError"] == "home_ctrl (18 octets) not expected here (uplink)"
    assert bench.source.status(1.0).bad == len(cases)


def test_own_forwarding_socket_is_not_heard():
    bench = Bench(forward_ui="127.0.0.1:10010", port=9110)
    bench.source.on_endpoint("forward_ui", ("0.0.0.0", 40123), 0.0)
    bench.datagram("uplink:9110", uplink(), 1.0, ("127.0.0.1", 40123))
    assert bench.source.counters["Received"] == 0
    bench.datagram("uplink:9110", uplink(), 1.0, ("127.0.0.1", 40124))
    assert bench.source.counters["Received"] == 1


def test_a_downlink_never_leaves_without_a_relay_address():
    bench = Bench(downlink_ports=(9200,), forward_ui="127.0.0.1:10010", forward_panosim="127.0.0.1:1", port=9110)
    for key in ("uplink:9110", CTRL, TRIGGER, DOWN):
        for vector in VECTORS:
            bench.datagram(key, bytes.fromhex(vector["hex"]), 1.0)
    for _, data, _ in bench.source.take_datagrams():
        assert teleop.kind_of(teleop.decode(data)) == "uplink"
    assert bench.source.counters["DownlinksRelayed"] == bench.source.counters["RelayRefused"] == 0
    assert not bench.source.relays


def test_the_relay_passes_exactly_the_checked_downlinks():
    bench = Bench(downlink_ports=(9200,), downlink_relay="10.0.0.5:9110", allow_from=("10.0.0.0/24",))
    good, bad = downlink(), [downlink(pedal=101), downlink(vehicle=99), downlink(sign=2)]
    for data in (good, *bad, good):
        bench.datagram(DOWN, data, 1.0, ("10.0.0.7", 1))
    bench.datagram(DOWN, good, 1.0, ("10.9.0.7", 1))
    assert bench.source.take_datagrams() == [("downlink_relay", good, ("10.0.0.5", 9110))] * 2
    counters = bench.source.counters
    assert (counters["DownlinksRelayed"], counters["RelayRefused"], counters["ForeignSource"]) == (2, 3, 1)
    for now in range(2, 30):
        bench.tick(float(now))
    assert bench.source.take_datagrams() == []
    assert bench.source.relays
    assert bench.source.status(30.0).relays
    assert bench.topics["Link/DownlinkRelay"] is True


def test_checks_are_counted_and_the_packet_is_published_all_the_same():
    bench = Bench()
    bench.datagram(UP, uplink(state=5, sign=2, info=9, unused0=1), 1.0)
    bench.datagram(CTRL, teleop.encode(HomeCtrl(10, 0, 0, 101, 0, -1)), 1.0)
    counters = bench.source.counters
    assert (counters["Check/unknown_enum"], counters["Check/undocumented"]) == (2, 1)
    assert (counters["Check/reserved_nonzero"], counters["Check/out_of_range"]) == (1, 2)
    assert (bench.topics["00A/Control"], bench.topics["00A/RemoteControlled"]) == ("unknown(2)", False)
    assert bench.topics["Cockpit/AccPedal_pct"] == 101


def test_silence():
    bench = Bench(stale_ms=StaleTeleop(uplink=500, downlink=300, ctrl=100), forget_s=2.0)
    bench.tick(0.5)
    assert bench.topics["00B/Link/UplinkConnected"] is False
    bench.datagram(UP, uplink(), 1.0)
    bench.datagram(CTRL, ctrl(), 1.0)
    assert bench.topics["00A/Link/UplinkConnected"] is True
    assert bench.topics["Cockpit/Link/Connected"] is True
    bench.tick(1.1)
    assert bench.topics["Cockpit/Link/Connected"] is False
    assert bench.topics["00A/Link/UplinkConnected"] is True
    bench.tick(1.5)
    assert bench.topics["00A/Link/UplinkConnected"] is False
    assert "00A/Uplink" in bench.topics
    bench.tick(3.0)
    assert not [name for name in bench.topics if "Link/" not in name]
    bench.datagram(UP, uplink(), 4.0)
    assert bench.topics["00A/Link/UplinkConnected"] is True
    assert bench.topics["00A/Raw/Speed"] == 500
    assert bench.source.status(4.0).gaps == 1


def test_figures():
    bench = Bench()
    for index in range(51):
        bench.datagram(UP, uplink(), 10 + index * 0.02 + (0.01 if index == 20 else 0))
    bench.tick(11.0)
    assert bench.topics["00A/Link/Uplink_hz"] == 50.0
    assert bench.topics["00A/Link/UplinkMaxGap_ms"] == pytest.approx(30)
    assert bench.topics["00A/Link/Uplinks"] == 51
    assert bench.topics["00A/Link/UplinkAge_ms"] == pytest.approx(0)
    assert bench.topics["Link/Received"] == 51
    status = bench.source.status(11.01)
    assert (status.hz, status.issues) == (50.0, ())
    assert bench.topics["Cockpit/Link/Ctrl_hz"] == 0.0


def test_issues():
    bench = Bench()
    bench.tick(1.0)
    assert bench.source.status(5.9).issues == ()
    assert [issue.code for issue in bench.source.status(6.5).issues] == ["source-silent"]
    bench.datagram(UP, uplink() + bytes(32), 7.0)
    bench.datagram(UP, uplink(), 7.0)
    bench.tick(8.0)
    (issue,) = bench.source.status(8.0).issues
    assert (issue.code, issue.sentence) == ("source-bad", "teleop: 64-octet uplinks of an older program")


def test_endpoints():
    source = TeleopSource(
        TeleopSettings(vehicle_ports=(9110,), trigger_port=0, downlink_ports=(9200,), forward_panosim="[fe80::1]:5"),
        "x",
    )
    assert [(item.key, item.port, item.direction) for item in source.endpoints()] == [
        ("uplink:10010", 10010, "listen"),
        ("uplink:9110", 9110, "listen"),
        ("ctrl:10015", 10015, "listen"),
        ("downlink:9200", 9200, "listen"),
        ("forward_panosim", 5, "send"),
    ]
    assert (source.endpoints()[-1].host, source.endpoints()[-1].bind) == ("fe80::1", "::")
    assert source.endpoints()[0].bind == "127.0.0.1"
