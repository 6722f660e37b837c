"""Whatever is written to NetworkTables or by a phone: the daemon sends nothing that can move a machine."""

import random
import socket
import time

from rig.nt_process import NtProcess
from rig.sent_datagrams import SentDatagrams
from rig.simulation import Simulation, Watch, tcp_ports, udp_ports

ROOTS = ("/FRC/", "/J519/", "/Teleop/")
INVENTED = {
    "/J519/arm/Command": "float[]", "/J519/arm/Motion": "raw", "/J519/arm/Joint_deg/Set": "double[]",
    "/J519/arm/Start": "boolean", "/Teleop/site/00A/Command/Speed": "int", "/Teleop/site/00A/Command/Remote": "boolean",
    "/Teleop/site/00A/Downlink": "raw", "/Teleop/site/Cockpit/Trigger": "raw", "/FRC/field/Command/Enabled": "boolean",
    "/FRC/field/Command/Control": "raw", "/FRC/field/Fms/Enabled": "boolean",
}  # fmt: skip
HARMLESS_TYPES = {0, 2, 3, 6, 7, 200}  # Start, Stop, Request, version questions
DOWNLINK = bytes.fromhex("aa0af10a")
ROUNDS = 30


def values(kind: str, rng: random.Random) -> object:
    number = rng.choice([0, 1, 2, 201, -1, rng.randint(-1000, 1000)])
    made = {
        "boolean": rng.random() < 0.5, "int": number, "double": float(number), "float": float(number),
        "string": rng.choice(["ready", "remote", "enabled", "start", ""]), "double[]": [float(number)] * 9,
        "float[]": [float(number)] * 9, "int[]": [number] * 9, "boolean[]": [True] * 9, "string[]": ["remote"],
    }  # fmt: skip
    return made.get(kind, rng.randbytes(rng.choice([8, 18, 20, 64, 344])))


def test_a_hostile_client_and_a_hostile_phone(robot, run_daemon, tmp_path, monkeypatch):
    record = SentDatagrams(tmp_path)
    for name, value in record.environment.items():
        monkeypatch.setenv(name, value)
    arm, uplink, ctrl, trigger, downlink, relay, ui, fms, ds, rio = udp_ports(10)
    (console,) = tcp_ports(1)
    text = f"""
[sources.frc]
enabled = true
name = "field"
listen = ["fms2ds-udp:{fms}", "ds2fms-udp:{ds}", "ds2rio-udp:{rio}"]
connect = ["rio2ds-tcp@127.0.0.1:{console}"]
write_fms_info = true
write_driver_station = true
[sources.j519]
enabled = true
name = "arm"
host = "127.0.0.1"
port = {arm}
[sources.teleop]
enabled = true
name = "site"
port = {uplink}
ctrl_port = {ctrl}
trigger_port = {trigger}
downlink_ports = [{downlink}]
downlink_relay = "127.0.0.1:{relay}"
forward_ui = "127.0.0.1:{ui}"
"""
    with socket.create_server(("127.0.0.1", console)):
        vehicles = Simulation("teleop", "--to", f"127.0.0.1:{uplink}", "--vehicles", "00A")
        bench = Simulation("j519", "--bind", f"127.0.0.1:{arm}", "--motion", "sine", "--ready-after", "0")
        with vehicles, bench, NtProcess.client(robot.port, "hostile") as hostile:
            daemon = run_daemon(text)
            phone = daemon.plug_in()
            watch = Watch(robot, "/")
            watch.until_value("J519/arm/Ready", True, 40)
            watch.until_types({"Teleop/site/00A/Uplink": "struct:TeleopUplink"}, 30)
            rng = random.Random(5)
            for number in range(ROUNDS):
                topics = {name: kind for name, kind in robot.types().items() if name.startswith(ROOTS)}
                for name, kind in (topics | INVENTED).items():
                    hostile.publish(name, topics.get(name, kind), values(kind, rng), flush=False)
                    if number % 10 == 0:
                        phone.say({"action": "put", "key": name, "value": values("double[]", rng)})
                hostile.publish("/round", "int", number)
            robot.wait_value("/round", ROUNDS - 1)
            time.sleep(1.0)  # whatever it would have caused had its time
            assert daemon.stop()[0] == 0
            assert "Traceback" not in "\n".join(daemon.log)
            assert bench.events[-1]["alarm"] is None
    sent = record.take(daemon.process.pid)
    to_arm = [entry.data for entry in sent if entry.port == arm]
    copies = [entry.data for entry in sent if entry.port == ui]
    assert {int.from_bytes(data[:4]) for data in to_arm} <= HARMLESS_TYPES
    assert int.from_bytes(to_arm[-1][:4]) == 2  # Stop is the last word
    assert copies
    assert all(len(data) == 32 and data.startswith(DOWNLINK) for data in copies)
    assert not [entry for entry in sent if len(entry.data) == 20 and entry.data.startswith(DOWNLINK)]
    assert not [entry for entry in sent if entry.port == relay]
    assert {entry.data for entry in sent if entry.port == console} <= {b"\0\0"}
    udp = [entry for entry in sent if entry.kind == "udp"]
    assert {entry.port for entry in udp} == {arm, ui}
