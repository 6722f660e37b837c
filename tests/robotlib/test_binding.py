import json
import math
import os

import pytest
from plan_rig import PATH_FILE, FakeDrive, act, par, pose, route, seq, write_path

from robotlib import FIELD_2026, Actions, DriveLeaves, DriveSettings, PathFolder, PlanError, Pose2, bind, parse
from robotlib.errors import BIND_CODES
from robotlib.extensions import EXTENSIONS
from robotlib.pathfile import read_path


class Arm:
    pass


ARM = Arm()


def actions():
    known = Actions()
    known.register(1, "Intake", lambda: None, requires=[ARM])
    known.register(2, "Score", lambda: None, requires=[ARM])
    known.register(3, "Blink", lambda: None)
    return known


def bound(plan, **options):
    options.setdefault("drive", FakeDrive())
    return bind(parse(json.dumps(plan), extra_types=EXTENSIONS), actions(), extra_types=EXTENSIONS, **options)


def refused(plan, **options):
    with pytest.raises(PlanError) as caught:
        bound(plan, **options)
    error = caught.value
    assert error.code in BIND_CODES
    assert 10 <= len(error.message) <= 120
    assert error.message[-1] in ".?"
    return error.code, error.path, error.message


PATH = {"type": "PATH", "pathName": "LeaveStart"}


def test_unknown_action():
    where = (
        "unknown-action",
        "$.children[1].actionId",
        "No action 7 on this robot. Known: 1 Intake, 2 Score, 3 Blink.",
    )
    assert refused(seq(act(1), act(7))) == where


@pytest.mark.parametrize("group", ["PARALLEL", "RACE", "DEADLINE"])
def test_requirement_conflict(group):
    plan = {"type": group, "children": [act(3), seq(act(3), act(1)), par(seq(act(2)))]}
    code, path, text = refused(plan)
    assert (code, path) == ("requirement-conflict", "$.children[2]")
    assert text == "Intake and Score both need the Arm."
    bound(seq(act(1), act(2)))


def test_no_drive():
    for step in (pose(1, 1), route((1, 1, 0)), PATH):
        assert refused(step, drive=None)[:2] == ("no-drive", "$")
    leaves = DriveLeaves(FakeDrive(), DriveSettings(holonomic=False))
    assert refused(seq(pose(1, 1)), leaves=leaves)[:2] == ("no-drive", "$.children[0]")


def test_path_not_found(tmp_path):
    folder = write_path(tmp_path)
    for name, hint in (
        ("LeaveStrat", "Did you mean LeaveStart?"),
        ("LeaveStart.path", "without .path"),
        ("y" * 128, "No path"),
    ):
        code, path, text = refused(seq({"type": "PATH", "pathName": name}), paths=folder)
        assert (code, path) == ("path-not-found", "$.children[0].pathName")
        assert hint in text
    assert refused(PATH)[0] == "path-not-found"
    assert refused(PATH, paths=tmp_path / "none")[0] == "path-not-found"
    for broken in ("{", "[]", "null", '{"waypoints":[]}', json.dumps({**PATH_FILE, "globalConstraints": {}})):
        (tmp_path / "LeaveStart.path").write_text(broken)
        assert refused(PATH, paths=tmp_path)[0] == "path-not-found"


def test_path_warnings(tmp_path):
    marker = {"name": "go", "waypointRelativePos": 0.5, "endWaypointRelativePos": None, "command": None}
    write_path(tmp_path, eventMarkers=[marker])
    assert [warning.code for warning in bound(PATH, paths=tmp_path).warnings] == ["event-markers-ignored"]
    assert [warning.code for warning in bound(seq(par())).warnings] == ["nothing-to-do"]


def test_goal_in_obstacle(tmp_path):
    rows = [[4.0 < 0.5 * column < 6.0 for column in range(33)] for _ in range(16)]
    grid = {"field_size": {"x": 16.5, "y": 8.0}, "nodeSizeMeters": 0.5, "grid": rows}
    (tmp_path / "navgrid.json").write_text(json.dumps(grid))
    assert refused(pose(5.0, 2.0), paths=tmp_path)[:2] == ("goal-in-obstacle", "$.pose")
    assert refused(route((1, 1, 0), (5, 2, 0)), paths=tmp_path)[:2] == ("goal-in-obstacle", "$.routePoses[1]")
    turned = {**pose(16.54 - 5.0, 2.0), "frame": "alliance"}
    assert refused(turned, paths=tmp_path, alliance="red")[0] == "goal-in-obstacle"
    bound(turned, paths=tmp_path, alliance="blue")


def test_alliance_frame_turns_poses_once():
    plan = {**seq(pose(1.0, 2.0, 0.5), route((3.0, 4.0, -1.0))), "frame": "alliance"}
    red = bound(plan, alliance="red").plan.poses()
    assert red[0] == Pose2(1.0, 2.0, 0.5).flipped(FIELD_2026)
    assert red[0].x == pytest.approx(15.54)
    assert red[0].rotation == pytest.approx(0.5 - math.pi)
    assert bound(plan, alliance="blue").plan.poses()[0] == Pose2(1.0, 2.0, 0.5)
    assert bound(seq(pose(1.0, 2.0, 0.5)), alliance="red").plan.poses()[0] == Pose2(1.0, 2.0, 0.5)


def test_path_file_geometry():
    file = read_path("x", json.dumps(PATH_FILE).encode())
    assert file.start == Pose2(1.0, 2.0, 0.0)
    assert file.end.distance(Pose2(2.4, 2.8, 0.0)) < 1e-9
    assert file.end.rotation == pytest.approx(math.radians(45))
    assert file.length_m == pytest.approx(1.613, abs=0.01)
    gaps = [a.distance(b) for a, b in zip(file.points[1:], file.points, strict=False)]
    assert max(gaps) < 0.11
    assert file.max_omega_radps == pytest.approx(2 * math.pi)


def test_path_folder_sees_changes(tmp_path):
    folder = PathFolder(write_path(tmp_path / "pathplanner" / "paths").parents[1])
    assert folder.names() == ("LeaveStart",)
    first = folder.load("LeaveStart")
    assert folder.load("LeaveStart") is first
    limits = {**PATH_FILE["globalConstraints"], "maxVelocity": 1.25}
    write_path(tmp_path / "pathplanner" / "paths", globalConstraints=limits)
    os.utime(tmp_path / "pathplanner" / "paths" / "LeaveStart.path", ns=(1, 1))
    assert folder.load("LeaveStart").max_speed_mps == 1.25
    with pytest.raises(OSError, match="other"):
        folder.load("other")
