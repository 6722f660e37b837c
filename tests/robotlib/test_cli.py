import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from plan_rig import CASES, EXAMPLE, FakeDrive, act, pose, route, seq, write_path

from robotlib import Actions, DryRun, PathFolder, Pose2, State, bind, parse
from robotlib.cli import main
from robotlib.preview import svg

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
TIMELINE = json.loads(
    '[{"path":"$","type":"SEQUENCE","label":"3 steps","start_s":0.0,"end_s":8.491,"basis":"default"},'
    '{"path":"$.children[0]","type":"PATH","label":"LeaveStart","start_s":0.0,"end_s":3.0,"basis":"default"},'
    '{"path":"$.children[1]","type":"PARALLEL","label":"2 steps","start_s":3.0,"end_s":6.0,"basis":"default"},'
    '{"path":"$.children[1].children[0]","type":"POSE","label":"2.00, 3.00, 90 deg","start_s":3.0,"end_s":6.0,'
    '"basis":"default"},'
    '{"path":"$.children[1].children[1]","type":"ACTION","label":"action 1","start_s":3.0,"end_s":4.0,'
    '"basis":"default"},'
    '{"path":"$.children[2]","type":"ROUTE","label":"2 poses","start_s":6.0,"end_s":8.491,"basis":"computed"}]'
)


@pytest.fixture
def plan_file(tmp_path):
    def write(text, name="plan.json"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return str(file)

    return write


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_check_json_of_every_case(case, plan_file, capsys):
    status = main(["check", plan_file(case["plan_json"]), "--json"])
    out, errors = capsys.readouterr()
    assert errors == ""
    assert out.count("\n") == 1
    assert out.isascii()
    answer = json.loads(out)
    if case["expect"] == "ok":
        assert status == 0
        assert list(answer) == ["ok", "tree", "warnings", "timeline"]
        assert answer["tree"] == case["expected_tree"]
        assert sorted({warning["code"] for warning in answer["warnings"]}) == case["expected_warnings"]
        assert all(list(warning) == ["code", "path", "message"] for warning in answer["warnings"])
    else:
        assert status == 1
        assert list(answer) == ["ok", "error"]
        assert list(answer["error"]) == ["code", "path", "message"]
        assert {key: answer["error"][key] for key in ("code", "path")} == case["error"]


def test_timeline_vector(plan_file, capsys):
    assert main(["check", plan_file(EXAMPLE), "--json"]) == 0
    line = capsys.readouterr().out
    answer = json.loads(line)
    assert answer["timeline"] == TIMELINE
    assert list(answer["timeline"][0]) == ["path", "type", "label", "start_s", "end_s", "basis"]
    assert line == json.dumps(answer, separators=(",", ":")) + "\n"


def test_text_output(plan_file, capsys):
    assert main(["check", plan_file(EXAMPLE)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "OK  6 steps, 3 poses, about 8.5 s"
    assert main(["check", plan_file(json.dumps(pose(50, 4)))]) == 1
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors == "$.pose.x: x = 50 m is off the field (0 to 16.54 m). [off-field]\n"


def test_unreadable_files(tmp_path, capsys):
    for name in ("nowhere.json", ".", "a\0b"):
        assert main(["check", str(tmp_path / name), "--json"]) == 2
        answer = json.loads(capsys.readouterr().out)
        assert (answer["error"]["code"], answer["error"]["path"]) == ("cannot-read", "$")
    assert main(["check", str(tmp_path / "nowhere.json")]) == 2


def test_sizes(plan_file, capsys):
    for data, code in (
        (b" " * 70_000, "too-large"),
        (("\u20ac" * 40_000).encode(), "too-large"),
        (b"\xff" * 70_000, "bad-encoding"),
        (EXAMPLE.encode("utf-16"), "bad-encoding"),
    ):
        assert main(["check", plan_file(data), "--json"]) == 1
        assert json.loads(capsys.readouterr().out)["error"]["code"] == code


def test_options(plan_file, tmp_path, capsys):
    file = plan_file(EXAMPLE)
    assert main(["check", file, "--actions", "2,3"]) == 1
    assert "[unknown-action]" in capsys.readouterr().err
    assert main(["check", file, "--actions", "1"]) == 0
    folder = write_path(tmp_path / "paths")
    assert main(["check", file, "--paths", str(folder), "--json", "--start", "1,2,0"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["timeline"][1]["basis"] == "computed"
    assert main(["check", file, "--paths", str(tmp_path / "none")]) == 1
    assert "[path-not-found]" in capsys.readouterr().err
    assert main(["check", file, "--field", "3x3"]) == 1
    assert "[off-field]" in capsys.readouterr().err
    wait = plan_file('{"type":"WAIT","seconds":1.5}', "wait.json")
    assert main(["check", wait]) == 1
    assert main(["check", wait, "--extensions"]) == 0
    for wrong in (
        ["--field", "axb"],
        ["--start", "1,2"],
        ["--actions", "x"],
        ["--field", "0x1"],
        ["--start", "1,2,inf"],
    ):
        with pytest.raises(SystemExit) as caught:
            main(["check", file, *wrong])
        assert caught.value.code == 2


def module(*arguments, **options):
    command = [sys.executable, "-m", "robotlib", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=60, **options)


def test_as_module_from_stdin():
    done = module("check", "-", "--json", input=EXAMPLE.encode())
    assert done.returncode == 0
    assert json.loads(done.stdout)["timeline"] == TIMELINE
    assert done.stderr == b""
    assert module("--version").stdout.startswith(b"robotlib ")
    assert module().returncode == 2


def test_closed_pipe_is_quiet(plan_file):
    large = plan_file(json.dumps(seq(*[route(*[(1, 1, 0)] * 60) for _ in range(30)])))
    process = subprocess.Popen(
        [sys.executable, "-m", "robotlib", "check", large, "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def picture(text, **options):
    data = svg(parse(text), **options)
    assert data == svg(parse(text), **options)
    assert "<script" not in data
    assert "href" not in data
    assert data.count("http") == 1
    return data, ElementTree.fromstring(data)


def test_preview():
    _, root = picture(EXAMPLE)
    poses = root.findall(f".//{SVG}g[@class='pose']")
    assert [float(group.get("data-x")) for group in poses] == [2.0, 2.0, 4.0]
    assert [group.get("data-path") for group in poses] == [
        "$.children[1].children[0].pose",
        "$.children[2].routePoses[0]",
        "$.children[2].routePoses[1]",
    ]
    assert float(poses[2].get("data-rotation")) == 2.68
    steps = root.findall(f".//{SVG}g[@class='step']")
    assert [group.get("data-type") for group in steps] == ["PATH", "POSE", "ACTION", "ROUTE"]


def test_preview_escapes_names():
    name = "<b>&\"'\ufffe"
    data, root = picture(json.dumps({"type": "PATH", "pathName": name, "name": "\ud800<"}))
    assert "<b>" not in data
    assert any("<b>&\"'\ufffd" in (title.text or "") for title in root.iter(f"{SVG}title"))
    data.encode("utf-8")


def largest_plans():
    poses = [(1, 1, 0)] * 64
    yield seq(*[route(*poses) for _ in range(36)])
    yield seq(*[{"type": "PATH", "pathName": "&" * 128} for _ in range(255)])
    yield seq(*[{"type": "PATH", "pathName": "\U0001f680" * 50} for _ in range(200)])
    deep = seq(*[route(*poses) for _ in range(34)])
    for _ in range(30):
        deep = seq(deep)
    yield deep
    yield {**seq(act(1)), **{f"field{i}": 0 for i in range(4000)}}


@pytest.mark.parametrize("plan", list(largest_plans()), ids=["poses", "escapes", "wide", "deep", "warnings"])
def test_preview_stays_small(plan):
    text = json.dumps(plan, separators=(",", ":"), ensure_ascii=False)
    data, _ = picture(text)
    assert len(data.encode("utf-8")) < 500_000


def test_preview_command(plan_file, tmp_path, capsysbinary):
    out = tmp_path / "plan.svg"
    assert main(["preview", plan_file(EXAMPLE), "--out", str(out)]) == 0
    good = out.read_bytes()
    ElementTree.fromstring(good)
    assert main(["preview", plan_file("{"), "--out", str(out)]) == 1
    assert out.read_bytes() == good
    assert main(["preview", plan_file("{"), "--out", str(tmp_path / "new.svg")]) == 1
    assert not (tmp_path / "new.svg").exists()
    assert main(["preview", plan_file(EXAMPLE), "--out", str(tmp_path / "no" / "x.svg")]) == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["plan.json", "plan.svg"]
    capsysbinary.readouterr()
    assert main(["preview", plan_file(EXAMPLE), "--out", "-"]) == 0
    assert capsysbinary.readouterr().out == good


def test_dry_run(tmp_path):
    made = []
    actions = Actions()
    actions.register(1, "Intake", lambda: made.append(1))
    paths = PathFolder(write_path(tmp_path))
    bound = bind(parse(EXAMPLE), actions, drive=FakeDrive(), paths=paths)
    first, second = (DryRun(bound, start=Pose2(1.0, 2.0, 0.0)).run() for _ in range(2))
    assert first == second
    assert first.states[-1] is State.DONE
    assert first.end_pose.distance(Pose2(4.0, 7.0, 2.68)) < 0.03
    assert 4.0 < first.duration_s < 8.0
    assert made == [1, 1]
