"""The driver station protocols end to end: field, driver station and robot, the daemon, a robot's server, a phone."""

import time

import pytest

from rig.simulation import Simulation, Watch, tcp_ports, udp_ports

MODE = {"Mode": "string", "Enabled": "boolean", "EStop": "boolean"}
FMS = {
    "Control": "struct:FrcFmsControl",
    **MODE,
    "AStop": "boolean",
    "AllianceStation": "string",
    "TournamentLevel": "string",
    **dict.fromkeys(("AllianceStationID", "MatchNumber", "PlayNumber", "RemainingTime_s", "Clock_us"), "int"),
    **dict.fromkeys(("GameData", "EventCode", "AssignedStation", "StationStatus", "ChallengeQuestion"), "string"),
    "ChallengeRandom": "int",
    **{
        f"Versions/{device}/{part}": "string"
        for device in ("WPILib", "RIO", "DS", "PDP", "PCM", "CANJag", "CANTalon", "ThirdParty")
        for part in ("Status", "Version")
    },
}
DS = {
    "Status": "struct:FrcDsStatus",
    **MODE,
    **dict.fromkeys(("RobotComms", "RadioPing", "RioPing", "BatteryValid"), "boolean"),
    "Battery_volts": "double",
    **dict.fromkeys(("LostPackets", "SentPackets", "TripTime_ms", "LaptopBattery_pct", "LaptopCpu_pct"), "int"),
    "Generation": "string",
    "ChallengeResponse": "string",
    **dict.fromkeys(("Log/TripTime_ms", "Log/Battery_volts", "Log/Bandwidth_mbps"), "double"),
    **dict.fromkeys(("Log/LostPackets", "Log/CanRaw", "Log/SignalRaw"), "int"),
    **{
        f"Log/{name}": "boolean"
        for name in (
            "Brownout", "Watchdog", "DsTeleop", "DsAuto", "DsDisabled", "RobotTeleop", "RobotAuto", "RobotDisabled",
        )
    },
}  # fmt: skip
COMMAND = {
    "Control": "struct:FrcDsControl",
    **MODE,
    **dict.fromkeys(("FmsAttached", "DsConnected", "RebootRio", "RestartCode"), "boolean"),
    "AllianceStation": "string",
    "AllianceStationID": "int",
    "RemainingTime_s": "double",
    "Clock_us": "int",
    "TimeZone": "string",
    "Joysticks": "struct:FrcJoystick[]",
    **{
        f"Joystick/{slot}/{name}": kind
        for slot in range(6)
        for name, kind in {
            "Axes": "double[]", "Buttons": "boolean[]", "Povs": "int[]",
            "Name": "string", "Type": "int", "IsXbox": "boolean", "AxisTypes": "int[]",
        }.items()
    },
    "EventName": "string",
    "MatchType": "string",
    "MatchNumber": "int",
    "ReplayNumber": "int",
    "GameData": "string",
}  # fmt: skip
ROBOT = {
    "Status": "struct:FrcRioStatus",
    **MODE,
    **dict.fromkeys(("Brownout", "CodeInitializing", "CodeAlive", "WantsDate", "BatteryValid"), "boolean"),
    "UserMode": "string",
    "Battery_volts": "double",
    "Cpu_pct": "double[]",
    "RamFree_bytes": "int",
    "DiskFree_bytes": "int",
    "Can/Utilization": "double",
    **dict.fromkeys(("Can/BusOff", "Can/TxFull", "Can/RxErrors", "Can/TxErrors"), "int"),
    "Pdp/Current_amps": "double[]",
    **{
        f"JoystickOutput/{slot}/{name}": kind
        for slot in (0, 1)
        for name, kind in {"Outputs": "int", "RumbleLeft": "double", "RumbleRight": "double"}.items()
    },
    **dict.fromkeys((f"Faults/{rail}" for rail in ("Comms", "12V", "6V", "5V", "3V3")), "int"),
    "Versions/FRC_Lib_Version": "string",
    "Versions/SoftwareVersion": "string",
    "Console/Output": "string",
    **dict.fromkeys(("Console/Error", "Console/ErrorLocation", "Console/ErrorStack"), "string"),
    "Console/ErrorCode": "int",
    "Console/ErrorIsError": "boolean",
    "Console/Errors": "int",
    "Console/Warnings": "int",
}
LINK = {
    "Connected": "boolean",
    "Peer": "string",
    "Rate_hz": "double",
    "Age_ms": "double",
    **dict.fromkeys(
        (
            "Received", "Rejected", "RateLimited", "Truncated", "Faults", "UnknownTags", "UnknownValues",
            "SequenceGaps", "OutOfOrder", "Duplicates", "TextReplaced",
        ),
        "int",
    ),
}  # fmt: skip
UDP = ("fms2ds-udp", "ds2fms-udp", "ds2rio-udp", "rio2ds-udp")
TCP = ("fms2ds-tcp", "ds2fms-tcp", "ds2rio-tcp", "rio2ds-tcp")
MATCH = ("--pre", "2", "--auto", "15", "--pause", "3", "--teleop", "60", "--post", "20")


class Bench:
    """Ports, the daemon's table, and the two simulations with their copies for it."""

    def __init__(self) -> None:
        udp, tcp = udp_ports(6), tcp_ports(5)
        self.listen = dict(zip(UDP, udp, strict=False)) | dict(zip(TCP, tcp, strict=False))
        self.field_udp, self.ds_udp, self.field_tcp = udp[4], udp[5], tcp[4]

    def table(self, **more: str) -> str:
        listen = [f"{protocol}:{port}" for protocol, port in self.listen.items()]
        keys = {"listen": str(listen), "forget_s": "1.5", "publish_hz": "0"} | more
        return '[sources.frc]\nenabled = true\nname = "field"\n' + "".join(
            f"{key} = {value}\n" for key, value in keys.items()
        )

    def copies(self, *protocols: str) -> list[str]:
        found: list[str] = []
        for protocol in protocols:
            found += ["--copy", f"{protocol}@127.0.0.1:{self.listen[protocol]}"]
        return found

    def field(self, *options: str) -> Simulation:
        return Simulation(
            "fms", "--udp-port", str(self.field_udp), "--tcp-port", str(self.field_tcp),
            "--to", f"127.0.0.1:{self.ds_udp}", *self.copies("fms2ds-udp", "fms2ds-tcp"), *options,
        )  # fmt: skip

    def station(self, *options: str) -> Simulation:
        return Simulation(
            "ds", "--fms", f"127.0.0.1:{self.field_udp}", "--tcp-port", str(self.field_tcp),
            "--udp-port", str(self.ds_udp), *self.copies(*(set(UDP + TCP) - {"fms2ds-udp", "fms2ds-tcp"})), *options,
        )  # fmt: skip


def below(prefix: str, topics: dict[str, str]) -> dict[str, str]:
    return {f"{prefix}/{name}": kind for name, kind in topics.items()}


def issues(daemon) -> set[str]:
    return {issue["code"] for issue in daemon.status()["issues"]}


def test_a_match_with_every_topic_of_the_page(robot, run_daemon):
    bench = Bench()
    daemon = run_daemon(bench.table())
    watch = Watch(robot, "/FRC/field/")
    phone = daemon.plug_in()
    phone.say({"action": "subscribe", "keys": ["/FRC/field/Fms/"]})
    options = (
        "--speed", "5", *MATCH, "--event", "TEST", "--game-data", "LRL", "--versions", "--challenge", "why",
        "--level", "qualification", "--match", "41", "--play", "2", "--estop", "red1@70",
    )  # fmt: skip
    with bench.field(*options) as field, bench.station("--robot"):
        expected = below("Fms", FMS) | below("Ds/1503", DS) | below("Command", COMMAND) | below("Robot", ROBOT)
        for protocol in UDP + TCP:
            expected |= below(f"Link/{protocol}", LINK)
        watch.until_types(expected, 40)
        assert watch.types() == expected
        constant = {
            "Fms/AllianceStation": "red1", "Fms/AllianceStationID": 1, "Fms/TournamentLevel": "qualification",
            "Fms/MatchNumber": 41, "Fms/PlayNumber": 2, "Fms/EventCode": "TEST", "Fms/StationStatus": "good",
            "Fms/Versions/RIO/Version": "2026.1", "Ds/1503/Generation": "ni", "Ds/1503/RobotComms": True,
            "Command/FmsAttached": True, "Command/EventName": "TEST", "Command/MatchType": "qualification",
            "Command/MatchNumber": 41, "Command/GameData": "LRL", "Fms/GameData": "LRL",
            "Command/Joystick/0/Name": "Stick 0", "Robot/CodeAlive": True, "Robot/RamFree_bytes": 120_000_000,
            "Robot/Versions/FRC_Lib_Version": "Java 2026.1.1", "Robot/JoystickOutput/0/RumbleRight": 1.0,
        }  # fmt: skip
        for name, value in constant.items():
            watch.until_value(name, value)
        watch.until(lambda: watch.value("Link/ds2rio-udp/Rate_hz") == pytest.approx(50, rel=0.1))
        control, sticks = watch.struct("Fms/Control"), watch.struct("Command/Joysticks")
        assert (control["match_number"], control["alliance_station"]) == (41, 0)
        assert [stick["absent"] for stick in sticks] == [False, False, True, True, True, True]
        assert watch.struct("Robot/Status")["battery_volts"] == pytest.approx(watch.value("Robot/Battery_volts"), abs=1)
        assert watch.struct("Ds/1503/Status")["team"] == 1503
        watch.until_value("Fms/EStop", True, 30)
        assert field.wait(60) == 0
        watch.until_value("Link/fms2ds-udp/Connected", False)
    assert watch.value("Link/fms2ds-udp/Truncated") == watch.value("Link/fms2ds-udp/Faults") == 0
    modes = [sample["value"] for sample in robot.samples if sample["topic"] == "/FRC/field/Fms/Mode"]
    enabled = [sample["value"] for sample in robot.samples if sample["topic"] == "/FRC/field/Fms/Enabled"]
    assert modes == ["autonomous", "teleop"]
    assert enabled == [False, True, False, True, False]
    assert phone.values("/FRC/field/Fms/Mode") == modes
    assert phone.values("/FRC/field/Fms/EStop")[-1] is True
    watch.until(lambda: not [name for name in watch.types() if not name.startswith("Link/")])
    assert "Traceback" not in "\n".join(daemon.log)


def test_the_generation_of_2027_and_a_field_that_falls_silent(robot, run_daemon):
    bench = Bench()
    daemon = run_daemon(bench.table())
    watch = Watch(robot, "/FRC/field/")
    options = (*MATCH, "--event", "TEST", "--game-data", "LRL", "--lite", "--team", "blue2=1503")
    field = bench.field(*options).start()
    try:
        with bench.station("--generation", "2027"):
            watch.until_types({"Fms/Lite": "boolean", "Fms/Team": "int", "Ds/1503/UdpPort": "int"}, 30)
            watch.until_value("Ds/1503/Generation", "2027")
            watch.until_value("Ds/1503/UdpPort", bench.ds_udp)
            watch.until_value("Fms/Team", 1503)
            watch.until_value("Fms/AllianceStation", "blue2")
            watch.until_value("Fms/GameData", "LRL")
            field.kill()
            killed = time.monotonic()
            watch.until_value("Link/fms2ds-udp/Connected", False)
            assert time.monotonic() - killed < 1.2 + 0.6
            watch.until(lambda: not [name for name in watch.types() if name.startswith("Fms/")], 10)
            field = bench.field(*options).start()
            watch.until_value("Link/fms2ds-udp/Connected", True, 30)
            watch.until_types({"Fms/Mode": "string"})
    finally:
        field.stop()
    daemon.until(lambda: "source-silent" in issues(daemon), 20)
    assert "Traceback" not in "\n".join(daemon.log)


def test_the_robot_programs_tables_on_request_and_while_free(robot, run_daemon):
    bench = Bench()
    daemon = run_daemon(bench.table(write_fms_info="true", write_driver_station="true"))
    table, other = Watch(robot, "/FMSInfo/"), Watch(robot, "/DriverStation/")
    with bench.station("--robot"):
        table.until_types(
            {
                ".type": "string", "GameSpecificMessage": "string", "EventName": "string", "MatchNumber": "int",
                "ReplayNumber": "int", "MatchType": "int", "IsRedAlliance": "boolean", "StationNumber": "int",
                "FMSControlData": "int",
            },
            30,
        )  # fmt: skip
        other.until_types({"ControlWord": "struct:ControlWord", "AllianceStationID": "int", "OpMode": "string"})
        assert robot.topics()["/FMSInfo/.type"]["properties"]["SmartDashboard"] == "FMSInfo"
        table.until_value("FMSControlData", 32)  # the driver station alone
        assert other.struct("ControlWord")["dsAttached"] is True
        assert table.value("IsRedAlliance") is True
        robot.publish("/FMSInfo/Mine", "int", 5)
        began = time.monotonic()
        table.until(lambda: set(table.types()) == {"Mine"})
        assert time.monotonic() - began < 1.0 + 0.5
        daemon.until(lambda: "fms-info-owned" in issues(daemon))
        assert "ControlWord" in other.types()
        robot.unpublish("/FMSInfo/Mine")
        table.until_types({"IsRedAlliance": "boolean"})
        daemon.until(lambda: "fms-info-owned" not in issues(daemon))
        robot.publish("/FMSInfo/FMSControlData", "int", 5)  # the same topic, with a value that is not ours
        table.until(lambda: set(table.types()) == {"FMSControlData"})
        daemon.until(lambda: "fms-info-owned" in issues(daemon))
        received = "/FRC/field/Link/ds2rio-udp/Received"
        before = table.newest()[received]
        table.until(lambda: table.newest()[received] > before + 50)  # a second of datagrams
        assert set(table.types()) == {"FMSControlData"}
        robot.unpublish("/FMSInfo/FMSControlData")
    table.until(lambda: not table.types() and not other.types())


def test_the_tables_stay_away_by_default_and_where_a_program_has_them(robot, run_daemon):
    bench = Bench()
    robot.publish("/FMSInfo/.type", "string", "FMSInfo")
    daemon = run_daemon(bench.table(write_fms_info="true"))
    watch, table = Watch(robot, "/FRC/field/"), Watch(robot, "/FMSInfo/")
    with bench.station("--robot"):
        watch.until_value("Link/ds2rio-udp/Connected", True, 30)
        daemon.until(lambda: "fms-info-owned" in issues(daemon))
        watch.until_types({"Command/MatchType": "string"})
        assert table.types() == {".type": "string"}
        assert not [name for name in robot.types() if name.startswith("/DriverStation")]


def test_what_goes_wrong_is_counted_one_to_one(robot, run_daemon):
    bench = Bench()
    daemon = run_daemon(bench.table())
    watch = Watch(robot, "/FRC/field/")
    faults = "loss dup reorder truncate zero-tag overrun unknown-tag bad-text station-6 split merge slow"
    station = bench.station("--robot", "--faults", faults, "--seed", "5", "--seconds", "14")
    with station:
        watch.until_types({"Command/Control": "struct:FrcDsControl", "Robot/Status": "struct:FrcRioStatus"}, 30)
        assert station.wait(40) == 0
    injected = station.events[-1]["faults"]
    watch.until_value("Link/rio2ds-udp/Connected", False)
    watch.until(lambda: watch.value("Link/rio2ds-udp/Age_ms") > 1500)
    for protocol in ("ds2rio-udp", "rio2ds-udp"):

        def told(counter: str, protocol: str = protocol) -> int:
            return int(watch.value(f"Link/{protocol}/{counter}"))

        def did(*names: str, protocol: str = protocol) -> int:
            return sum(injected.get(f"{protocol}/{name}", 0) for name in names)

        assert told("Truncated") == did("truncate") > 0
        assert told("Faults") == did("zero-tag", "overrun") > 0
        assert told("UnknownTags") == did("unknown-tag") > 0
        assert told("TextReplaced") == did("bad-text")
        assert told("UnknownValues") == did("station-6")
        assert told("RateLimited") == told("Rejected") == 0
        if protocol == "ds2rio-udp":  # the robot's answers echo the numbers of whatever reached it
            assert told("Duplicates") == did("dup") > 0
            assert abs(told("OutOfOrder") - did("reorder")) <= 1  # one may still be held at the end
            assert abs(told("SequenceGaps") - did("loss", "truncate", "reorder")) <= 2
    assert watch.value("Link/rio2ds-tcp/Faults") == 0  # frames cut anywhere are put together again
    assert "Traceback" not in "\n".join(daemon.log)
