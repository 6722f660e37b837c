"""What the packets of a driver station hold: tables, texts, joysticks, tags."""

from aoabridge.codecs.wpistruct import SchemaRegistry
from aoabridge.sources.frc.structs import SCHEMAS
from fakes.frc_source import CMD, FMS, RIO, RIO_TCP, Bench, cmd, fms


def test_game_data_tag_absent_means_empty_only_on_a_link_that_had_it():
    bench = Bench(FMS)
    bench.datagram(FMS, fms(0), 1.0)
    assert "Fms/GameData" not in bench.topics
    bench.datagram(FMS, fms(1, tail=b"\x04\x20RLR"), 1.0)
    bench.datagram(FMS, fms(0), 1.0, ("127.0.0.1", 9))
    assert bench.topics["Fms/GameData"] == "RLR"
    bench.datagram(FMS, fms(2, tail=b"\x09\x20"), 1.0)  # a broken tag says nothing
    assert bench.topics["Fms/GameData"] == "RLR"
    bench.datagram(FMS, fms(3), 1.0)
    assert bench.topics["Fms/GameData"] == ""


def test_lite_by_port():
    bench = Bench("fms2ds-udp:1120", FMS)
    bench.datagram(FMS, fms(0), 1.0)
    assert "Fms/Lite" not in bench.topics
    bench.datagram("fms2ds-udp:1120", fms(1), 1.0)
    assert bench.topics["Fms/Lite"] is True
    bench.datagram(FMS, fms(2), 1.0)
    assert bench.topics["Fms/Lite"] is False


def test_what_is_not_known_any_more_is_withdrawn():
    bench = Bench(CMD, RIO)
    bench.datagram(CMD, cmd(1, tail=bytes.fromhex("050740000000")), 1.0)
    bench.datagram(CMD, cmd(2, tail=bytes.fromhex("0507bf800000")), 1.0)
    assert "Command/RemainingTime_s" in bench.withdrawn
    bench.datagram(RIO, bytes.fromhex("00010104200c8000"), 1.0)
    bench.datagram(RIO, bytes.fromhex("0002010420256000"), 1.0)
    assert bench.topics["Robot/BatteryValid"] is False
    assert "Robot/Battery_volts" not in bench.topics


def test_joysticks_hold_their_slots_and_the_limits_of_the_roborio():
    bench = Bench(CMD)
    axes, povs = bytes([13, *range(13)]), bytes([1, 0xFF, 0xFF])
    whole = b"\x0c" + axes + bytes([40, 0x80, 0, 0, 0, 1]) + povs
    tail = bytes.fromhex("010c") + bytes.fromhex("030c05ff") + bytes([len(whole)]) + whole
    bench.datagram(CMD, cmd(1, tail=tail), 1.0)
    data = bench.topics["Command/Joysticks"]
    registry = SchemaRegistry()
    registry.add("FrcJoystick", SCHEMAS["FrcJoystick"])
    first, third = registry.codec("FrcJoystick").decode_array(data)
    assert (first["slot"], first["absent"]) == (0, True)
    assert (third["slot"], third["absent"], third["axis_count"], third["button_count"]) == (2, False, 12, 32)
    assert (third["buttons"], third["povs"][0], third["axes"][11]) == (1, -1, 11)
    assert len(bench.topics["Command/Joystick/2/Axes"]) == 13
    assert bench.topics["Command/Joystick/2/Buttons"][0] is True
    assert bench.topics["Command/Joystick/2/Buttons"][39] is True
    assert bench.topics["Command/Joystick/0/Axes"] == []
    assert "Command/Joystick/1/Axes" not in bench.topics


def test_rumble_order():
    tail = bytes.fromhex("090100000001ffff0000")
    for order, sides in (("left-right", (1.0, 0.0)), ("right-left", (0.0, 1.0))):
        bench = Bench(RIO, rumble_order=order)
        bench.datagram(RIO, bytes.fromhex("00010104200c8000") + tail, 1.0)
        output = "Robot/JoystickOutput/0/Rumble"
        assert (bench.topics[f"{output}Left"], bench.topics[f"{output}Right"]) == sides


def test_console_lines_all_count():
    bench = Bench(RIO_TCP)
    line = "000a0c3f80000000016869" + "0a"
    bench.stream(RIO_TCP, 1, line * 3, 1.0)
    assert bench.history("Robot/Console/Output") == ["hi\n"] * 3
    assert all(item.keep_all for item in bench.log if item.topic.endswith("Output"))


def test_errors_and_warnings_are_summed():
    bench = Bench(RIO_TCP, publish_hz=0)
    for flags, occurrences in ((1, 3), (0, 0), (1, 0), (0, 5)):
        frame = bytes.fromhex("00000000" + "0001") + occurrences.to_bytes(2) + bytes(4) + bytes([flags]) + bytes(6)
        data = (len(frame) + 1).to_bytes(2) + b"\x0b" + frame
        bench.stream(RIO_TCP, 1, data.hex(), 1.0)
    assert (bench.topics["Robot/Console/Errors"], bench.topics["Robot/Console/Warnings"]) == (4, 6)


def test_device_names_are_made_safe_and_limited():
    bench = Bench(RIO_TCP)
    for index in range(70):
        name = f"../{index}/é".encode() + b"x" * 80
        frame = bytes(4) + bytes([len(name)]) + name + b"\x011"
        bench.stream(RIO_TCP, 1, ((len(frame) + 1).to_bytes(2) + b"\x0a" + frame).hex(), 1.0)
    devices = [name for name in bench.topics if name.startswith("Robot/Versions/")]
    assert len(devices) == 64
    assert all(len(name.split("/")) == 3 and len(name.split("/")[2]) == 64 for name in devices)
    assert "Robot/Versions/.._0__" + "x" * 58 in devices


def test_texts_are_cut_and_replaced_and_counted():
    bench = Bench(RIO_TCP)
    text = b"\xff" + b"a" * 5000
    frame = b"\x00" + text
    bench.stream(RIO_TCP, 1, (len(frame).to_bytes(2) + frame).hex(), 1.0)
    assert bench.topics["Robot/Console/Message"] == "\ufffd" + "a" * 4095
    assert bench.source.counters["rio2ds-tcp/TextReplaced"] == 1


def tables(info_from="ds2rio", **more):
    return Bench(
        CMD, FMS, "ds2rio-tcp:1741", write_fms_info=True, write_driver_station=True, info_from=info_from, **more
    )


def test_tables_are_withheld_until_it_is_known_that_nobody_else_writes():
    bench = tables()
    bench.datagram(CMD, cmd(1, 4), 1.0)
    assert not [name for name in bench.topics if name.startswith("/FMSInfo")]
    bench.source.on_table_owner("/FMSInfo", False, 1.0)
    bench.take()
    assert bench.topics["/FMSInfo/FMSControlData"] == 33
    assert bench.topics["/FMSInfo/.type"] == "FMSInfo"
    types = {item.topic: item.properties for item in bench.log}
    assert types["/FMSInfo/.type"] == {"SmartDashboard": "FMSInfo"}
    names = [item.topic for item in bench.log]
    assert names.index("/FMSInfo/StationNumber") < names.index("/FMSInfo/IsRedAlliance")
    assert not [name for name in bench.topics if name.startswith("/DriverStation")]
    bench.source.on_table_owner("/FMSInfo", True, 2.0)
    bench.take()
    assert not [name for name in bench.topics if name.startswith("/FMSInfo")]
    assert [issue.code for issue in bench.source.status(2.0).issues] == ["fms-info-owned"]
    bench.datagram(CMD, cmd(2, 4), 2.0)
    assert not [name for name in bench.topics if name.startswith("/FMSInfo")]


def test_tables_from_frames_and_their_end():
    bench = tables()
    for table in ("/FMSInfo", "/DriverStation"):
        bench.source.on_table_owner(table, False, 0.0)
    bench.datagram(CMD, cmd(1, 4), 1.0)
    bench.stream("ds2rio-tcp:1741", 1, "000a07045743424302001201" + "00040e524c52", 1.0)
    for table, game_data in (("/FMSInfo", "GameSpecificMessage"), ("/DriverStation", "GameData")):
        values = {
            name.removeprefix(table + "/"): value for name, value in bench.topics.items() if name.startswith(table)
        }
        assert values[game_data] == "RLR"
        assert (values["EventName"], values["MatchType"]) == ("WCBC", 2)
        assert (values["MatchNumber"], values["ReplayNumber"]) == (18, 1)
    assert bench.topics["/DriverStation/OpMode"] == ""
    bench.tick(6.0)
    assert not [name for name in bench.topics if name.startswith(("/FMSInfo", "/DriverStation"))]


def test_tables_are_off_by_default():
    bench = Bench(CMD)
    bench.source.on_table_owner("/FMSInfo", False, 0.0)
    bench.datagram(CMD, cmd(1), 1.0)
    assert not [name for name in bench.topics if not name.startswith(("Command/", "Link/"))]
