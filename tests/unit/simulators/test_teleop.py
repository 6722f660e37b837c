"""Vehicle, cockpit and the pacing of commands, in virtual time."""

import pytest

from aoabridge.codecs import teleop
from aoabridge.codecs.teleop import Downlink, HomeTrigger, Uplink
from aoabridge.errors import DecodeError
from aoabridge.simulators.teleop import CockpitModel, DownlinkPacer, VehicleModel, parse_keys, parse_teleop_faults

S = 1_000_000


def drive(vehicle: VehicleModel, begin_s: float, end_s: float, command: Downlink | None = None) -> list[bytes]:
    """Tick every 10 ms, with the command each 20 ms; the uplinks."""
    sent = []
    for step in range(round(begin_s * 100), round(end_s * 100)):
        now_us = step * 10_000
        if command is not None and step % 2 == 0:
            vehicle.on_datagram(teleop.encode(command), now_us)
        vehicle.on_tick(now_us)
        sent += vehicle.take_datagrams()
    return sent


def remote(**fields: int) -> Downlink:
    values = {"vehicle_id": 10, "rc_speed": 0, "rc_acc_pedal": 0, "rc_brake_pedal": 0, "ctrl_sign": 1, "unused": 0}
    return Downlink(**(values | {"rc_steer": 0} | fields))


def last(sent: list[bytes]) -> Uplink:
    packet = teleop.decode(sent[-1], ("uplink",))
    assert isinstance(packet, Uplink)
    assert teleop.check(packet) == []
    return packet


def test_alone_it_drives_its_circle_at_the_given_rate() -> None:
    vehicle = VehicleModel(10, 0, rate_hz=50)
    sent = drive(vehicle, 0, 10)
    assert 495 <= len(sent) <= 501
    packet = last(sent)
    assert (packet.vehicle_id, packet.ctrl_sign, packet.ctrl_info, packet.speed) == (10, 0, 0, 3600)
    assert packet.latitude != last(sent[:1]).latitude


def test_it_follows_wheel_and_pedals() -> None:
    vehicle = VehicleModel(10, 0)
    packet = last(drive(vehicle, 0, 1, remote(rc_steer=9000, rc_acc_pedal=100)))
    assert packet.ctrl_sign == 1
    assert packet.steering == 9000
    assert packet.speed == pytest.approx(3600 + 720, abs=20)
    packet = last(drive(vehicle, 1, 2, remote(rc_acc_pedal=100, rc_brake_pedal=100)))  # the brake wins
    assert packet.speed == pytest.approx(3600, abs=20)


def test_without_commands_it_brakes_to_rest_and_says_so() -> None:
    vehicle = VehicleModel(10, 0)
    drive(vehicle, 0, 1, remote())
    packet = last(drive(vehicle, 1, 2))
    assert (packet.ctrl_sign, packet.ctrl_info) == (0, 2)
    packets = [teleop.decode(data) for data in drive(vehicle, 2, 7)]
    assert min(packet.speed for packet in packets if isinstance(packet, Uplink)) == 0
    assert last(drive(vehicle, 7, 8)).ctrl_info == 0


def test_a_command_for_another_vehicle_is_ignored() -> None:
    vehicle = VehicleModel(10, 0)
    assert last(drive(vehicle, 0, 1, remote(vehicle_id=11))).ctrl_sign == 0


def test_faults_are_counted_and_recognisable() -> None:
    faults = parse_teleop_faults("drop=0.1,dup=0.1,corrupt=0.1,short=0.1,old64=0.1,stall@3:2,takeover@5,fault@8")
    vehicle = VehicleModel(10, 0, faults=faults)
    sent = drive(vehicle, 0, 10)
    bad = 0
    for data in sent:
        try:
            teleop.decode(data, ("uplink",))
        except DecodeError:
            bad += 1
    injected = vehicle.injected
    assert bad == injected["corrupt"] + injected["short"] + injected["old64"] > 50
    assert vehicle.counters["uplinks"] == len(sent) - bad
    assert injected["stall"] == 100
    packet = next(p for p in (teleop.decode(d) for d in sent[::-1] if len(d) == 32 and d[0] == 0xAA))
    assert isinstance(packet, Uplink)
    assert (packet.vehicle_state, packet.ctrl_info) == (1, 2)


@pytest.mark.parametrize("text", ["drop=2", "drop", "stall@3", "fall@3", "drop=x"])
def test_unknown_faults(text: str) -> None:
    with pytest.raises(ValueError, match="unknown fault"):
        parse_teleop_faults(text)


def test_pacing() -> None:
    pacer = DownlinkPacer()
    pacer.release(0)
    assert not pacer.due(0)
    pacer.drive(0)
    due = [now for now in range(0, S, 1000) if pacer.due(now)]
    assert due == list(range(0, S, 20_000))
    pacer.release(S)
    due = [now for now in range(S, 3 * S, 1000) if pacer.due(now)]
    assert due == list(range(S, S + 800_000, 80_000))
    assert pacer.next_deadline_us is None


def test_the_cockpit_plays_its_script() -> None:
    cockpit = CockpitModel((10, 11), 0, keys=parse_keys("r@0.5,1@1"))
    said = []
    for now_us in range(0, 3 * S, 5000):
        cockpit.on_tick(now_us)
        said += [(now_us, *entry) for entry in cockpit.take_datagrams()]
    assert sum(kind == "ctrl" for _, kind, _, _ in said) == 300
    triggers = [teleop.decode(data) for _, kind, _, data in said if kind == "trigger"]
    assert triggers == [HomeTrigger(1)]
    commands = [
        (now_us, ident, teleop.decode(data, ("downlink",))) for now_us, kind, ident, data in said if kind == "downlink"
    ]
    driving = [entry for entry in commands if entry[2].ctrl_sign == 1]
    assert (driving[0][0], driving[-1][0]) == (S // 2, S - 20_000)
    released = commands[len(driving) :]
    assert len(released) == 10
    assert {ident for _, ident, _ in commands} == {10}  # the vehicle that was driven gets its zeros
    assert all((c.rc_speed, c.rc_acc_pedal, c.rc_steer, c.ctrl_sign) == (0, 0, 0, 0) for _, _, c in released)


def test_keys() -> None:
    assert parse_keys("n@8,r@2") == [("r", 2.0), ("n", 8.0)]
    for text in ("x@1", "r", "r@"):
        with pytest.raises(ValueError, match="KEY@SECOND"):
            parse_keys(text)
