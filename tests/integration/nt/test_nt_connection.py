"""Robots that come late, die, return, move or freeze; what of ours survives and what must not."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from aoabridge.adapters.nt import NtTarget
from aoabridge.values import ClockSync, Connected, Disconnected, Update
from rig.nt_loop import NtLoop
from rig.nt_process import NtProcess, free_port

ROOT = Path(__file__).parents[3]


def test_server_that_starts_later(caplog: pytest.LogCaptureFixture) -> None:
    robot = NtProcess.server()
    with NtLoop(robot.address) as bridge:
        put = bridge.put("/early", "int", 1)
        assert bridge.result(put).code == "not-connected"
        assert bridge.client.server_now_us() is None
        with robot:
            bridge.until_online()
            robot.publish("/x", "int", 1)
            bridge.until_value("/x", 1)
            assert "/early" not in robot.topics()
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []


def test_own_values_wait_for_the_connection_as_the_newest() -> None:
    robot = NtProcess.server()
    with NtLoop(robot.address) as bridge:
        for value in range(3):
            bridge.publish("/AOABridge/x/n", "int", value)
            bridge.turn()
        bridge.publish("/Elastic/RobotNotifications", "string", "old news", keep_all=True)
        bridge.turn()
        with robot:
            bridge.until_online()
            bridge.until(lambda: robot.values("/AOABridge/x/n") == [2])
            assert "/Elastic/RobotNotifications" not in robot.topics()
    assert bridge.client.counters["nt_discarded_offline"] == 1


@pytest.mark.parametrize("pause_s", [0.3, 0.3, 3.0])
def test_robot_killed_and_restarted(robot: NtProcess, bridge: NtLoop, pause_s: float) -> None:
    """Phones receive again without acting; nothing that a phone put comes back; the client is not restarted."""
    robot.publish("/x", "int", 1)
    bridge.until_value("/x", 1)
    assert bridge.code("/RoboRoute/RunPose", "boolean", True) is None
    bridge.publish("/AOABridge/x/name", "string", "x")
    bridge.publish("/.schema/struct:P", "structschema", "double x")
    robot.wait_value("/RoboRoute/RunPose", True)
    bridge.until(lambda: robot.values("/AOABridge/x/name") == ["x"])
    seen = len(bridge.events)

    robot.kill()
    bridge.until(lambda: Disconnected() in bridge.events)
    assert bridge.code("/RoboRoute/RunPose", "boolean", True) == "not-connected"
    resume_at = time.monotonic() + pause_s
    bridge.until(lambda: time.monotonic() >= resume_at)
    robot.samples.clear()
    robot.start()

    bridge.until_online()
    robot.publish("/x", "int", 2)
    bridge.until_value("/x", 2)
    bridge.until(lambda: robot.values("/AOABridge/x/name") == ["x"])
    bridge.until(lambda: robot.values("/.schema/struct:P") == [b"double x"])
    bridge.run(0.3)
    assert "/RoboRoute/RunPose" not in robot.topics()
    assert robot.values("/RoboRoute/RunPose") == []
    assert bridge.client.counters["nt_blocked"] == 0
    assert bridge.connections() == [Connected, Disconnected, Connected]
    later = bridge.events[seen:]
    assert ClockSync(0, 0, False) in [
        e if not isinstance(e, ClockSync) or e.valid else ClockSync(0, 0, False) for e in later
    ]


def test_own_values_that_come_back_after_a_reconnect_are_dropped(robot: NtProcess, bridge: NtLoop) -> None:
    values = {"int": 5, "double": float("nan"), "float": 0.1, "float[]": [0.1], "string": "s"}
    for type_string, value in values.items():
        bridge.publish(f"/AOABridge/x/{type_string}", type_string, value)
    bridge.until(lambda: len(robot.topics()) == len(values))
    robot.kill()
    bridge.until(lambda: Disconnected() in bridge.events)
    robot.start()
    bridge.until_online()
    bridge.until(lambda: bridge.client.counters["nt_own_echoes"] == len(values))
    assert [event for event in bridge.events if isinstance(event, Update)] == []


def test_foreign_value_equal_to_ours_is_no_echo(robot: NtProcess, bridge: NtLoop) -> None:
    """The robot takes a phone's true back and gives it again: the phones must see both."""
    bridge.put("/t", "boolean", True)
    robot.wait(lambda: bridge.turn() is None and robot.values("/t") == [True])
    for value in (False, True):
        robot.publish("/t", "boolean", value)
        bridge.until_value("/t", value)


def test_restart_between_two_turns_still_drops_what_phones_put(robot: NtProcess, bridge: NtLoop) -> None:
    """A loop that does not run for seconds must not leave a robot moving: the poller thread drops at once."""
    assert bridge.code("/RoboRoute/RunPose", "boolean", True) is None
    robot.wait_value("/RoboRoute/RunPose", True)
    robot.kill()
    robot.wait(lambda: bridge.client.counters["nt_losses"] == 1)
    robot.samples.clear()
    robot.start()
    instance = bridge.client._instance
    assert instance is not None
    robot.wait(instance.isConnected)
    late = bridge.put("/RoboRoute/RunPose", "boolean", True)
    bridge.client.turn(time.monotonic())
    [result] = bridge.client.take_put_results()
    assert (result.put, result.code) == (late, "not-connected")
    bridge.until(lambda: bridge.connections() == [Connected, Disconnected, Connected])
    assert bridge.code("/end", "int", 1) is None
    robot.wait_value("/end", 1)
    assert "/RoboRoute/RunPose" not in robot.topics()


def test_frozen_robot_is_noticed(robot: NtProcess, bridge: NtLoop) -> None:
    robot.suspend()
    try:
        bridge.until(lambda: Disconnected() in bridge.events, seconds=3.0)
    finally:
        robot.resume()
    bridge.until(lambda: bridge.connections()[-1:] == [Connected])


def test_retained_schema_outlives_its_publisher_until_the_server_restarts(robot: NtProcess) -> None:
    with NtLoop(robot.address) as bridge:
        bridge.until_online()
        bridge.publish("/.schema/struct:P", "structschema", "double x")
        bridge.publish("/AOABridge/x/n", "int", 1)
        bridge.until(lambda: len(robot.topics()) == 2)
    robot.wait_topic("/AOABridge/x/n", gone=True)
    assert robot.types() == {"/.schema/struct:P": "structschema"}
    robot.kill()
    robot.start()
    assert robot.types() == {}


def test_move_to_another_server(robot: NtProcess, bridge: NtLoop) -> None:
    robot.publish("/x", "int", 1)
    bridge.until_value("/x", 1)
    assert bridge.code("/RoboRoute/Run", "boolean", True) is None
    with NtProcess.server() as other:
        assert bridge.client.set_target(NtTarget(servers=(other.address,)))
        bridge.until(lambda: bridge.connections() == [Connected, Disconnected, Connected])
        assert bridge.client.address == other.address
        assert bridge.client.targets == (other.address,)
        assert bridge.types() == {}
        bridge.run(0.2)
        assert other.types() == {}
    assert robot.types() == {"/x": "int"}


def test_same_target_changes_nothing(robot: NtProcess, bridge: NtLoop) -> None:
    assert not bridge.client.set_target(NtTarget(servers=(robot.address,)))
    bridge.run(0.1)
    assert bridge.connections() == [Connected]


def test_target_taken_away_ends_the_connection(robot: NtProcess, bridge: NtLoop) -> None:
    assert bridge.client.set_target(NtTarget())
    bridge.until(lambda: Disconnected() in bridge.events)
    bridge.run(1.5)
    assert bridge.connections() == [Connected, Disconnected]


def test_list_of_servers_is_tried_until_one_answers(robot: NtProcess) -> None:
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))  # ours, so that nobody else answers there
        with NtLoop(f"127.0.0.1:{refusing.getsockname()[1]}", robot.address) as bridge:
            bridge.until_online()
            assert bridge.client.address == robot.address


def test_without_a_target_it_waits_and_can_be_given_one(robot: NtProcess) -> None:
    with NtLoop() as bridge:
        bridge.run(0.2)
        assert bridge.events in ([], [ClockSync(0, 0, False)])
        assert bridge.client.targets == ()
        bridge.client.set_target(NtTarget(servers=("127.0.0.1",), port=robot.port))
        bridge.until_online()


def test_poller_shows_life_without_traffic(bridge: NtLoop) -> None:
    began = time.monotonic()
    bridge.until(lambda: bridge.client.poller_seen_at() > began, seconds=1.0)


def test_two_clients_of_one_name(robot: NtProcess, bridge: NtLoop) -> None:
    with NtLoop(robot.address) as second:
        second.until_online()
        assert second.code("/t", "int", 1) is None
        bridge.until_value("/t", 1)


def test_embedded_server_needs_no_robot() -> None:
    port = free_port()
    with NtLoop(embedded=True, port=port) as bridge:
        bridge.until_online()
        assert bridge.events[0] == Connected(f"127.0.0.1:{port}")
        with NtProcess.client(port) as robot:
            robot.publish("/x", "int", 1)
            bridge.until_value("/x", 1)
            assert bridge.code("/put", "double", 1.5) is None
            robot.wait_value("/put", 1.5)
            bridge.publish("/AOABridge/x/n", "int", 3)
            bridge.until(lambda: robot.values("/AOABridge/x/n") == [3])
            assert bridge.values("/AOABridge/x/n") == []
        bridge.until(lambda: "/x" not in bridge.types())
        assert bridge.client.online
        assert bridge.client.server_now_us() is not None


def test_embedded_server_on_a_taken_port_says_so(robot: NtProcess) -> None:
    loop = NtLoop(embedded=True, port=robot.port)
    with pytest.raises(OSError, match="in use"):
        loop.client.open()
    loop.client.close()


def test_machine_without_an_address_names_its_state_and_can_embed() -> None:
    """In a namespace with only ``lo`` up the client cannot resolve 127.0.0.1; the server works."""
    script = "ip link set lo up && exec " + " ".join([sys.executable, str(Path(__file__).with_name("bare_network.py"))])
    done = subprocess.run(
        ["unshare", "--map-root-user", "--net", "sh", "-c", script],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "no address, embedded works\n", "")
