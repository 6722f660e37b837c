"""What strangers send: counted and shown, never an exception, never a wrong value, never at the relay's expense."""

import json
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from aoabridge.codecs import frc_ds, teleop
from aoabridge.codecs.frc_ds.builders import build_ds_control
from aoabridge.codecs.frc_ds.ds_rio import Countdown
from aoabridge.codecs.frc_ds.values import Single
from aoabridge.codecs.j519 import dispatch
from aoabridge.codecs.j519.packets import Motion, Status
from rig.simulation import Watch, tcp_ports, udp_ports

CONTROL = bytes.fromhex("000100440001020029010000000000000000000000000f")[:22]  # teleop, enabled, blue1 would be 3
UPLINK = teleop.encode(teleop.Uplink(10, 0, 8_500_000, 50_000_000, 100, 3600, -1500, 0, 0, 1440, 0))
NAN_BITS = 0x7FC00000


def status(**more: object) -> bytes:
    zeros = (0.0,) * 9
    values = {
        "version_no": 1, "sequence_no": 1, "status": 0x05, "read_io_type": 0, "read_io_index": 0, "read_io_mask": 0,
        "read_io_value": 0, "time_stamp": 8, "cartesian_pose": zeros, "joint_pose": zeros, "motor_current": zeros,
    } | more  # fmt: skip
    return dispatch.encode(Status(**values))


class Sender:
    def __init__(self, host: str = "127.0.0.1") -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self._host = host

    def __call__(self, port: int, *datagrams: bytes) -> None:
        for data in datagrams:
            self._socket.sendto(data, (self._host, port))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def send():
    sender = Sender()
    yield sender
    sender.close()


@pytest.fixture
def far_sender():
    """Sends from an address of this machine that is not loopback, which sources take for a stranger."""
    lines = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split()[3].partition("/")[0] for line in lines]
    address = next((address for address in found if not address.startswith("127.")), None)
    if address is None:
        address = "10.99.0.1"
        subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", "lo"], check=True)
    sender = Sender(address)
    yield sender
    sender.close()


def table(kind: str, **keys: object) -> str:
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    return f'[sources.{kind}]\nenabled = true\nname = "x"\n{lines}'


def all_sources(**more: object) -> tuple[dict[str, int], str]:
    names = ("fms", "rio", "ctrl", "trigger", "uplink", "arm")
    ports = dict(zip(names, udp_ports(len(names)), strict=True))
    listen = [f"fms2ds-udp:{ports['fms']}", f"ds2rio-udp:{ports['rio']}"]
    text = table("frc", listen=listen, **more) + table(
        "teleop", port=ports["uplink"], ctrl_port=ports["ctrl"], trigger_port=ports["trigger"], **more
    )
    return ports, text + table("j519", port=ports["arm"], **more)


def nothing_but_links(robot) -> list[str]:
    roots = ("/FRC/", "/J519/", "/Teleop/")
    return [
        name
        for name in robot.types()
        if name.startswith(roots) and "/Link/" not in name and not name.endswith("/State")
    ]


def alive(daemon) -> None:
    """It answers, and no line of its log tells of an exception."""
    assert daemon.status()["robot"]["state"] == "connected"
    assert "Traceback" not in "\n".join(daemon.log)


def test_refused_datagrams(robot, run_daemon, send):
    ports, text = all_sources()
    daemon = run_daemon(text)
    frc, arm, site = (Watch(robot, f"/{root}/x/") for root in ("FRC", "J519", "Teleop"))
    motion = dispatch.encode(Motion(version_no=1, sequence_no=1, last_data=0, read_io_type=0, read_io_index=0,
        read_io_mask=0, data_style=1, write_io_type=0, write_io_index=0, write_io_mask=0, write_io_value=0,
        unused=0, axes=(0.0,) * 9))  # fmt: skip
    send(ports["fms"], b"", CONTROL[:21], bytes(8))  # nothing, cut, a status of the robot
    send(ports["arm"], b"", status()[:131], status() + b"\0", motion, struct.pack(">II", 99, 1))
    send(ports["uplink"], b"", UPLINK[:31], UPLINK * 2, b"\xff" + UPLINK[1:])
    send(ports["uplink"], teleop.encode(teleop.Downlink(10, 0, 0, 0, 1, 0, 0)))
    send(ports["trigger"], UPLINK)
    frc.until_value("Link/fms2ds-udp/Truncated", 3)
    arm.until_value("Link/Rejected", 5)
    site.until_value("Link/Truncated", 2)
    site.until_value("Link/BadLength", 1)
    site.until_value("Link/BadMagic", 1)
    site.until_value("Link/WrongPort", 2)  # a command where only vehicles send, a report where keys arrive
    assert nothing_but_links(robot) == []
    shown = daemon.status()["sources"]
    assert [shown[kind]["bad"] for kind in ("frc", "j519", "teleop")] == [3, 5, 6]
    daemon.until(lambda: "source-bad" in {issue["code"] for issue in daemon.status()["issues"]})
    alive(daemon)


def test_values_that_are_none(robot, run_daemon, send):
    ports, text = all_sources(publish_hz=0)
    daemon = run_daemon(text)
    frc, arm, site = (Watch(robot, f"/{root}/x/") for root in ("FRC", "J519", "Teleop"))
    nan = build_ds_control(1, mode="teleop", enabled=True, station=0, tags=(Countdown(Single(NAN_BITS)),))
    send(ports["rio"], frc_ds.encode("ds2rio-udp", nan))
    send(ports["fms"], CONTROL[:5] + b"\x06\x54" + CONTROL[7:] + b"\x02\xee\0" + b"\xff\x20cut")
    frc.until_types({"Command/Enabled": "boolean", "Fms/AllianceStation": "string"})
    assert "Command/RemainingTime_s" not in frc.types()
    frc.until_value("Fms/AllianceStation", "unknown")
    frc.until_value("Fms/AllianceStationID", 0)
    frc.until_value("Fms/TournamentLevel", "unknown")
    frc.until_value("Link/fms2ds-udp/UnknownTags", 1)
    frc.until_value("Link/fms2ds-udp/UnknownValues", 2)
    frc.until_value("Link/fms2ds-udp/Faults", 1)
    good = status()
    at = good.index(struct.pack(">I", 8)) + 4
    send(ports["arm"], good[:at] + struct.pack(">I", NAN_BITS) + good[at + 4 :])
    arm.until_value("Link/NonFinite", 1)
    assert "Pose" not in arm.types()
    arm.until_types({"Status": "struct:J519Status"})
    unknown = teleop.encode(teleop.Uplink(99, 0, 1, 1, 1, 1, 1, 0, 0, 1, 0))
    strange = teleop.encode(teleop.Uplink(10, 7, 1, 1, 1, 1, 1, 2, 9, 1, 5))
    send(ports["uplink"], unknown, strange)
    site.until_value("00A/Control", "unknown(2)")
    site.until_value("00A/RemoteControlled", False)
    site.until_value("00A/VehicleState", "unknown(7)")
    site.until_value("Link/UnknownVehicle", 1)
    site.until_value("Link/Check/unknown_enum", 2)
    assert not [name for name in site.types() if name.startswith(("063", "99"))]
    alive(daemon)


def test_a_flood_costs_neither_memory_nor_the_phones(robot, run_daemon, send):
    ports, text = all_sources()
    daemon = run_daemon(text)
    phone = daemon.plug_in()
    daemon.until(lambda: any(line.get("status", {}).get("server") == "connected" for line in phone.lines))
    frc = Watch(robot, "/FRC/x/")
    burst = {ports["fms"]: CONTROL, ports["arm"]: status(), ports["uplink"]: UPLINK, ports["ctrl"]: b"garbage"}

    def flood(seconds: float, per_second: int = 50_000) -> int:
        began, sent = time.monotonic(), 0
        while (elapsed := time.monotonic() - began) < seconds:
            if sent < elapsed * per_second:
                for port, data in burst.items():
                    send(port, *[data] * 25)
                sent += 100
        return sent

    flood(0.5)
    before = daemon.rss_mib()
    phone.say({"action": "put", "key": "/during/flood", "value": 1, "id": 1})
    assert flood(2.0) > 20_000  # as many as a busy machine lets us send
    asked = time.monotonic()
    shown = daemon.status()["sources"]
    assert time.monotonic() - asked < 2.0
    daemon.until(lambda: {"ack": 1} in phone.lines, 3)
    robot.wait_value("/during/flood", 1)
    assert daemon.rss_mib() - before < 16
    assert shown["frc"]["hz"] <= 20_000
    frc.until(lambda: (frc.value("Link/fms2ds-udp/RateLimited") or 0) > 500)
    values = [sample for sample in robot.samples if sample["topic"] == "/FRC/x/Fms/Control"]
    assert len(values) <= 500 * 6  # max_rate bounds what reaches the robot
    alive(daemon)


def test_senders_outside_allow_from(robot, run_daemon, far_sender, send):
    ports, text = all_sources(bind="0.0.0.0", allow_from=["198.51.100.0/24"])
    daemon = run_daemon(text)
    frc, arm, site = (Watch(robot, f"/{root}/x/") for root in ("FRC", "J519", "Teleop"))
    far_sender(ports["fms"], CONTROL, CONTROL)
    far_sender(ports["arm"], status())
    far_sender(ports["uplink"], UPLINK, UPLINK, UPLINK)
    frc.until_value("Link/fms2ds-udp/Rejected", 2)
    arm.until_value("Link/ForeignSource", 1)
    site.until_value("Link/ForeignSource", 3)
    assert nothing_but_links(robot) == []
    send(ports["uplink"], UPLINK)
    site.until_types({"00A/Uplink": "struct:TeleopUplink"})
    alive(daemon)


def test_a_port_in_use_hurts_nobody_and_is_taken_when_it_is_free(robot, run_daemon, send):
    ports, text = all_sources()
    (stream_port,) = tcp_ports(1)
    text = text.replace('"fms2ds-udp', f'"rio2ds-tcp:{stream_port}", "fms2ds-udp')
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as owner, socket.create_server(("127.0.0.1", stream_port)):
        owner.bind(("127.0.0.1", ports["fms"]))
        daemon = run_daemon(text)
        taken = daemon.until(lambda: [issue for issue in daemon.status()["issues"] if issue["code"] == "source-bind"])
        name = Path("/proc/self/comm").read_text().strip()  # the ports are ours
        daemon.until(lambda: f"Stop {name}" in {issue["fix"] for issue in daemon.status()["issues"]})
        assert str(stream_port) in json.dumps(taken) or str(ports["fms"]) in json.dumps(taken)
        phone = daemon.plug_in()
        daemon.until(lambda: any(line.get("status", {}).get("server") == "connected" for line in phone.lines))
        phone.say({"action": "put", "key": "/x", "value": 1, "id": 1})
        daemon.until(lambda: {"ack": 1} in phone.lines)
        frc = Watch(robot, "/FRC/x/")
        send(ports["rio"], frc_ds.encode("ds2rio-udp", build_ds_control(1, mode="teleop", enabled=True, station=0)))
        frc.until_types({"Command/Enabled": "boolean"})
    daemon.until(lambda: "source-bind" not in {issue["code"] for issue in daemon.status()["issues"]}, 12)
    send(ports["fms"], CONTROL)
    frc.until_types({"Fms/Enabled": "boolean"})
    alive(daemon)
