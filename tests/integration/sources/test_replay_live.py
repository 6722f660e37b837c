"""A capture as the source of topics; a simulation that cannot be."""

import io
import socket
import subprocess
import sys

import dpkt
import pytest

from aoabridge.codecs import frc_ds
from aoabridge.codecs.frc_ds.builders import build_ds_control, build_rio_status
from rig.simulation import Watch, udp_ports


def capture() -> bytes:
    target = io.BytesIO()
    writer = dpkt.pcap.Writer(target)
    for number in range(100):
        control = build_ds_control(number, mode="autonomous", enabled=number >= 50, station=4)
        status = build_rio_status(number, mode="autonomous", enabled=number >= 50, battery_volts=12.25)
        for name, packet, port in (("ds2rio-udp", control, 1110), ("rio2ds-udp", status, 1150)):
            data = frc_ds.encode(name, packet)
            segment = dpkt.udp.UDP(sport=40000, dport=port, data=data, ulen=8 + len(data))
            frame = dpkt.ip.IP(src=b"\n\0\0\1", dst=b"\n\0\0\2", p=17, data=segment)
            writer.writepkt(bytes(dpkt.ethernet.Ethernet(type=0x0800, data=frame)), ts=1000 + number * 0.02)
    return target.getvalue()


def test_a_capture_gives_the_topics_that_live_datagrams_give(robot, run_daemon, tmp_path):
    path = tmp_path / "drive.pcap"
    path.write_bytes(capture())
    daemon = run_daemon(f'[sources.frc]\nenabled = true\nname = "old"\nreplay = "{path}"\nreplay_loop = true\n')
    watch = Watch(robot, "/FRC/old/")
    watch.until_value("Command/Enabled", True)
    watch.until_value("Robot/Battery_volts", 12.25)
    watch.until_value("Command/AllianceStation", "blue2")
    watch.until_value("Robot/UserMode", "autonomous")
    watch.until(lambda: watch.value("Link/ds2rio-udp/Rate_hz") == pytest.approx(50, rel=0.1))
    watch.until_value("Command/Enabled", False)  # it begins again
    assert "Traceback" not in "\n".join(daemon.log)


@pytest.mark.parametrize("content", [None, b"no capture"])
def test_a_capture_that_cannot_be_played_is_an_issue(robot, run_daemon, tmp_path, content):
    path = tmp_path / "drive.pcap"
    if content is not None:
        path.write_bytes(content)
    daemon = run_daemon(f'[sources.frc]\nenabled = true\nname = "old"\nreplay = "{path}"\n')
    daemon.until(lambda: [issue for issue in daemon.status()["issues"] if issue["code"] == "source-bind"])
    assert "Traceback" not in "\n".join(daemon.log)


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("fms", "--team", "green1=3"), 64, "green1"),
        (("fms", "--level", "final"), 64, "unknown level"),
        (("ds", "--faults", "lose"), 64, "unknown fault"),
        (("ds", "--copy", "fms2ds-udp@127.0.0.1:9"), 64, "this simulator sends"),
        (("teleop", "--vehicles", "zz"), 64, "no vehicle id"),
        (("j519", "--faults", "fall@3"), 64, "unknown fault"),
        (("j519", "--bind", "127.0.0.1:{taken}"), 1, "in use"),
    ],
)
def test_a_simulation_that_cannot_be(words, status, text):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as owner:
        owner.bind(("127.0.0.1", 0))
        filled = [word.format(taken=owner.getsockname()[1]) for word in words]
        ports = [str(port) for port in udp_ports(2)]
        extra = ["--udp-port", ports[0], "--tcp-port", ports[1]] if words[0] in ("fms", "ds") else []
        command = [sys.executable, "-m", "aoabridge", "simulate", *filled, *extra, "--seconds", "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == status, done.stderr
    assert text in done.stderr
    assert "Traceback" not in done.stderr
