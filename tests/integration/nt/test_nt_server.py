"""The bench server, alone and as the simulated robot's place."""

import time

import pytest

from aoabridge.adapters.nt_server import BenchServer
from aoabridge.simulators.robot import POSE_TOPIC, Pose, RobotSettings, SimulatedRobot
from aoabridge.values import Publication, Withdrawal
from rig.nt_loop import NtLoop
from rig.nt_process import NtProcess, free_port


@pytest.fixture
def server() -> BenchServer:
    return BenchServer()


def test_publishes_and_remembers_what_clients_set(server: BenchServer) -> None:
    port = server.start()
    try:
        assert server.publish([Publication("/x", "int", 1), Publication("/v", "double", 1.0, {"unit": "V"})]) == []
        with NtProcess.client(port) as client:
            client.wait_value("/x", 1)
            client.wait_topic("/v")
            assert client.topics()["/v"] == {"type": "double", "properties": {"unit": "V"}}
            began = time.monotonic()
            client.publish("/put", "string", "a")
            client.wait(lambda: server.latest("/put") == "a")
            assert server.types() == {"/x": "int", "/v": "double", "/put": "string"}
            (arrived, update), *others = server.take_arrivals()
            assert (update.topic, update.value, others) == ("/put", "a", [])
            assert began <= arrived <= time.monotonic()
            assert server.take_arrivals() == []
            server.publish([Withdrawal("/x"), Publication("/v", "double", 2.0)])
            client.wait_topic("/x", gone=True)
            client.wait_value("/v", 2.0)
            assert server.latest("/x") is None
        deadline = time.monotonic() + 5
        while "/put" in server.types():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert server.latest("/put") is None
    finally:
        server.stop()


def test_names_topics_whose_type_is_another_ones(server: BenchServer) -> None:
    port = server.start()
    try:
        with NtProcess.client(port) as client:
            client.publish("/t", "string", "a")
            client.wait(lambda: server.latest("/t") == "a")
            assert server.publish([Publication("/t", "int", 1), Publication("/u", "int", 1)]) == ["/t"]
    finally:
        server.stop()


def test_taken_port_is_an_error_and_leaves_nothing(server: BenchServer) -> None:
    other = BenchServer()
    port = other.start()
    try:
        with pytest.raises(OSError, match="in use"):
            server.start(port=port)
        assert server.start() != port
    finally:
        server.stop()
        other.stop()


def test_a_named_port_is_used_and_free_again_after_stop(server: BenchServer) -> None:
    port = free_port()
    for _ in range(2):
        assert server.start(port=port) == port
        server.stop()
        server.stop()


def test_publish_before_start_is_a_wrong_call(server: BenchServer) -> None:
    with pytest.raises(ValueError, match="not started"):
        server.publish([])


def test_more_servers_than_instances_are_refused() -> None:
    """ntcore hands out a dead instance beyond the sixteenth and says nothing."""
    servers: list[BenchServer] = []
    try:
        with pytest.raises(OSError, match="no NetworkTables instance left"):
            for _ in range(20):
                servers.append(BenchServer())
                servers[-1].start()
    finally:
        for server in servers:
            server.stop()
    again = BenchServer()
    again.start()
    again.stop()


def test_simulated_robot_drives_where_the_bridge_sends_it(server: BenchServer) -> None:
    robot = SimulatedRobot(RobotSettings(topics=40))
    port = server.start()
    server.publish(robot.start(time.monotonic()))
    try:
        with NtLoop(f"127.0.0.1:{port}") as bridge:

            def turn_both() -> None:
                now = time.monotonic()
                updates = [update for _, update in server.take_arrivals()]
                server.publish([*robot.on_updates(updates, now), *robot.on_tick(now)])
                bridge.publish("/RoboRoute/Heartbeat", "double", now)

            def until(state: str) -> None:
                bridge.until(lambda: turn_both() is None and bridge.values("/RoboRoute/Status/State")[-1:] == [state])

            until("NO_PLAN")
            bridge.until(lambda: turn_both() is None and len(bridge.types()) >= 40)
            assert bridge.types()[POSE_TOPIC] == "struct:Pose2d"
            assert bridge.values("/.schema/struct:Pose2d") == [b"Translation2d translation;Rotation2d rotation"]
            here = robot.pose
            assert bridge.code("/RoboRoute/Pose", "struct:Pose2d", Pose(here.x_m + 0.5, here.y_m, 0.0).pack()) is None
            assert bridge.code("/RoboRoute/RunPose", "boolean", True) is None
            until("RUNNING")
            assert bridge.code("/RoboRoute/RunPose", "boolean", False) is None
            until("DONE")
    finally:
        server.stop()
