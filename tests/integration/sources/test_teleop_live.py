"""Remote driving end to end: simulated vehicles and cockpit, the daemon, a robot's server, sinks for the copies."""

import socket
import time

import pytest

from aoabridge.codecs import teleop
from rig.simulation import Simulation, Watch, udp_ports

VEHICLE = {
    "Uplink": "struct:TeleopUplink",
    "VehicleState": "string",
    "Control": "string",
    "ControlInfo": "string",
    "Fault": "boolean",
    "RemoteControlled": "boolean",
    "TakeoverRequested": "boolean",
    **{f"Raw/{name}": "int" for name in ("Longitude", "Latitude", "Heading", "Speed", "Steering", "Rpm")},
    "Speed_kmh": "double",
    "Steering_deg": "double",
    "Heading_deg": "double",
    "Longitude_deg": "double",
    "Latitude_deg": "double",
    "Link/UplinkConnected": "boolean",
    "Link/DownlinkConnected": "boolean",
    **dict.fromkeys(("Link/Uplink_hz", "Link/UplinkAge_ms", "Link/UplinkMaxGap_ms"), "double"),
    "Link/Uplinks": "int",
    "Link/Downlinks": "int",
}
COCKPIT = {
    "Ctrl": "struct:TeleopHomeCtrl",
    **dict.fromkeys(("Steering", "Speed", "AccPedal_pct", "BrakePedal_pct", "PingTime"), "int"),
    "Speed_kmh": "double",
    "Steering_deg": "double",
    "ObservedVehicle": "string",
    "Trigger": "struct:TeleopHomeTrigger",
    "TriggerState": "string",
    "TriggerCount": "int",
    "Link/Connected": "boolean",
    **dict.fromkeys(("Link/Ctrl_hz", "Link/CtrlAge_ms", "Link/CtrlMaxGap_ms"), "double"),
}
LINK = {
    **dict.fromkeys(
        (
            "Received", "Truncated", "BadLength", "BadMagic", "WrongPort", "ForeignSource", "UnknownVehicle",
            "ForwardedUI", "ForwardedPanoSim", "ForwardErrors", "DownlinksRelayed", "RelayRefused",
            "Check/unknown_vehicle", "Check/unknown_enum", "Check/undocumented", "Check/out_of_range",
            "Check/reserved_nonzero",
        ),
        "int",
    ),
    "DownlinkRelay": "boolean",
    "LastError": "string",
}  # fmt: skip
COMMAND = {
    "Downlink": "struct:TeleopDownlink",
    **dict.fromkeys((f"Command/{name}" for name in ("Speed", "Steer", "AccPedal_pct", "BrakePedal_pct")), "int"),
    "Command/Speed_kmh": "double",
    "Command/Steer_deg": "double",
    "Command/Remote": "boolean",
    "Link/Downlink_hz": "double",
    "Link/DownlinkAge_ms": "double",
}
SCALE = "scale = { speed_kmh = 0.01, steering_deg = 0.01, heading_deg = 0.01, position_deg = 1e-6 }\n"


class Sink:
    """A UDP listener that keeps everything."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        self._taken: list[bytes] = []

    def take(self) -> list[bytes]:
        while True:
            try:
                self._taken.append(self._socket.recv(4096))
            except BlockingIOError:
                return self._taken

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def sinks():
    found = [Sink(), Sink()]
    yield found
    for sink in found:
        sink.close()


def table(uplink: int, ctrl: int, trigger: int, **more: str) -> str:
    keys = {"port": uplink, "ctrl_port": ctrl, "trigger_port": trigger} | more
    return (
        '[sources.teleop]\nenabled = true\nname = "site"\nforget_s = 1.5\n'
        + SCALE
        + "".join(f"{key} = {value}\n" for key, value in keys.items())
    )


def below(prefix: str, topics: dict[str, str]) -> dict[str, str]:
    return {f"{prefix}/{name}": kind for name, kind in topics.items()}


def test_two_vehicles_and_a_cockpit(robot, run_daemon, sinks):
    uplink, ctrl, trigger = udp_ports(3)
    ui, panosim = sinks
    more = {"forward_ui": f'"127.0.0.1:{ui.port}"', "forward_panosim": f'"127.0.0.1:{panosim.port}"'}
    daemon = run_daemon(table(uplink, ctrl, trigger, **more))
    watch = Watch(robot, "/Teleop/site/")
    phone = daemon.plug_in()
    phone.say({"action": "subscribe", "keys": ["/Teleop/site/"]})
    options = ("--to", f"127.0.0.1:{uplink}", "--ctrl-port", str(ctrl), "--trigger-port", str(trigger))
    simulation = Simulation("teleop", "--role", "both", "--script", "r@1,n@3", "--seconds", "5", *options).start()
    expected = below("00A", VEHICLE) | below("00B", VEHICLE) | below("Cockpit", COCKPIT) | below("Link", LINK)
    for vehicle in ("00A", "00B", "00C"):  # listed, but without downlink ports; 00C never reported
        expected.pop(f"{vehicle}/Link/Downlinks", None)
        expected.pop(f"{vehicle}/Link/DownlinkConnected", None)
    watch.until_types(expected, 20)
    beyond = {name for name in watch.types() if name not in expected}
    assert all(name.startswith("00C/Link/") for name in beyond), beyond
    watch.until_value("Cockpit/TriggerState", "remote")
    watch.until_value("00A/RemoteControlled", True)
    watch.until(lambda: watch.value("00A/Link/Uplink_hz") == pytest.approx(50, rel=0.05))
    watch.until(lambda: watch.value("Cockpit/Link/Ctrl_hz") == pytest.approx(100, rel=0.05))
    assert watch.value("Cockpit/ObservedVehicle") == "00A"
    report, raw = watch.struct("00B/Uplink"), watch.value("00B/Raw/Speed")
    assert (report["vehicle_id"], report["gram_header"], report["ctrl_sign"]) == (11, 2730, 0)
    assert watch.value("00B/Speed_kmh") == pytest.approx(raw * 0.01)
    assert simulation.wait(30) == 0
    watch.until_value("00A/Link/UplinkConnected", False)
    sent = simulation.events[-1]["uplinks"]
    watch.until_value("Link/ForwardedUI", sent)
    assert watch.value("00A/Link/Uplinks") + watch.value("00B/Link/Uplinks") == len(ui.take()) == sent
    assert ui.take() == panosim.take()
    assert all(isinstance(teleop.decode(data), teleop.Uplink) for data in ui.take())
    assert watch.value("Link/ForwardErrors") == 0
    watch.until(lambda: not [name for name in watch.types() if name.startswith("00A/") and "/Link/" not in name])
    assert phone.values("/Teleop/site/00A/RemoteControlled")[:2] == [False, True]
    assert phone.values("/Teleop/site/Cockpit/TriggerState")[-1] == "nothing"
    assert "Traceback" not in "\n".join(daemon.log)


def test_faults_are_counted_and_nothing_bad_is_published(robot, run_daemon):
    uplink, ctrl, trigger = udp_ports(3)
    daemon = run_daemon(table(uplink, ctrl, trigger))
    watch = Watch(robot, "/Teleop/site/")
    faults = "drop=0.05,dup=0.05,corrupt=0.05,short=0.05,old64=0.05,stall@2:1,fault@4"
    with Simulation(
        "teleop", "--vehicles", "00A", "--to", f"127.0.0.1:{uplink}", "--faults", faults, "--seconds", "5"
    ) as run:
        watch.until_value("00A/Link/UplinkConnected", True)
        watch.until_value("00A/Link/UplinkConnected", False)
        watch.until_value("00A/Link/UplinkConnected", True)
        watch.until_value("00A/VehicleState", "fault")
        assert run.wait(30) == 0
    injected = run.events[-1]["faults"]
    watch.until_value("Link/BadMagic", injected["corrupt"])
    watch.until_value("Link/Truncated", injected["short"])
    watch.until_value("Link/BadLength", injected["old64"])
    watch.until_value("00A/Link/Uplinks", run.events[-1]["uplinks"])
    assert daemon.status()["sources"]["teleop"]["bad"] == sum(injected[name] for name in ("corrupt", "short", "old64"))
    for sample in robot.samples:
        if sample["topic"] == "/Teleop/site/00A/Uplink":
            assert isinstance(teleop.decode(sample["value"]), teleop.Uplink)
    assert "Traceback" not in "\n".join(daemon.log)


def test_downlinks_are_watched_and_only_checked_ones_relayed(robot, run_daemon, sinks):
    uplink, ctrl, trigger, downlink = udp_ports(4)
    target = sinks[0]
    more = {"downlink_ports": f"[{downlink}]", "downlink_relay": f'"127.0.0.1:{target.port}"'}
    run_daemon(table(uplink, ctrl, trigger, **more))
    watch = Watch(robot, "/Teleop/site/")
    good = teleop.encode(teleop.Downlink(10, 1000, 20, 0, 1, 0, -500))
    bad = teleop.encode(teleop.Downlink(10, 1000, 101, 0, 1, 0, -500))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(40):
            sender.sendto(bad if number % 4 == 0 else good, ("127.0.0.1", downlink))
            sender.sendto(good, ("127.0.0.1", uplink))  # the wrong port: only vehicles send there
            time.sleep(0.01)
        watch.until_types(below("00A", COMMAND))
        watch.until_value("Link/DownlinksRelayed", 30)
    watch.until_value("Link/RelayRefused", 10)
    watch.until_value("Link/WrongPort", 40)
    watch.until_value("Link/DownlinkRelay", True)
    assert target.take() == [good] * 30
    assert watch.value("00A/Command/Remote") is True
    assert watch.value("00A/Command/Steer_deg") == pytest.approx(-5.0)
    assert watch.struct("00A/Downlink")["rc_steer"] == -500
    watch.until_value("00A/Link/DownlinkConnected", False)
    watch.until(lambda: "00A/Downlink" not in watch.types())
    assert len(target.take()) == 30  # the relay stops when the commands stop
