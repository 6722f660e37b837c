import json
import subprocess
import sys
import time

import pytest
from plan_rig import CASES, act, par, pose, seq

import robotlib
from robotlib import FIELD_2026, ExtraType, Field, Limits, PlanError, Pose2, RegistryError, from_dict, parse, plan_id
from robotlib.errors import PARSE_CODES
from robotlib.extensions import EXTENSIONS


def outcome(text, **options):
    try:
        plan = parse(text, **options)
    except PlanError as error:
        return {"code": error.code, "path": error.path}
    return plan.to_dict(), sorted({warning.code for warning in plan.warnings})


def expected(case):
    if case["expect"] == "err":
        return case["error"]
    return case["expected_tree"], case["expected_warnings"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case):
    text = case["plan_json"]
    assert outcome(text) == outcome(text.encode("utf-8")) == outcome(bytearray(text.encode("utf-8"))) == expected(case)


@pytest.mark.parametrize("case", [case for case in CASES if case["expect"] == "ok"], ids=lambda case: case["name"])
def test_case_round_trip(case):
    plan = parse(case["plan_json"])
    again = parse(plan.dump())
    assert again == plan
    assert again.dump() == plan.dump() == from_dict(plan.to_dict()).dump()
    assert parse(plan.dump(indent=2)) == plan
    assert plan.plan_id == plan_id(case["plan_json"])
    assert from_dict(plan.to_dict()).plan_id == plan_id(plan.dump())


@pytest.mark.parametrize("case", [case for case in CASES if case["expect"] == "err"], ids=lambda case: case["name"])
def test_case_text(case):
    with pytest.raises(PlanError) as caught:
        parse(case["plan_json"])
    error = caught.value
    assert error.code in PARSE_CODES
    assert 10 <= len(error.message) <= 120
    assert error.message[-1] in ".?"
    assert error.message.isprintable()
    assert str(error) == f"{error.path}: {error.message} [{error.code}]"
    assert error.to_dict() == {"code": error.code, "path": error.path, "message": error.message}


CASE_PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import robotlib
from robotlib.extensions import EXTENSIONS
wrong = []
for case in json.load(open(sys.argv[2], encoding="utf-8")):
    for text in (case["plan_json"], case["plan_json"].encode()):
        try:
            plan = robotlib.parse(text)
            got = [plan.to_dict(), sorted({w.code for w in plan.warnings})]
            assert robotlib.parse(plan.dump()) == plan
        except robotlib.PlanError as error:
            got = {"code": error.code, "path": error.path}
        ok = case["expect"] == "ok"
        if got != ([case["expected_tree"], case["expected_warnings"]] if ok else case["error"]):
            wrong.append(case["name"])
print(json.dumps(wrong))
"""


def test_fixed_point_beside_pi():
    for rotation in ("3.14159265459", "-3.14159265459", "3.141592654", "3.1415926546", "9.42477796077", "-1e9"):
        plan = parse(f'{{"type":"POSE","pose":{{"x":1,"y":1,"rotation":{rotation}}}}}')
        assert parse(plan.dump()) == plan


def test_round_trip_of_a_plan_that_fills_the_limit():
    poses = ",".join(['{"x":1,"y":1,"rotation":0}'] * 64)
    route = f'{{"type":"ROUTE","routePoses":[{poses}]}}'
    plan = parse('{"type":"SEQUENCE","children":[' + ",".join([route] * 36) + "]}")
    assert parse(plan.dump()) == plan
    assert parse(plan.dump()).dump() == plan.dump()


def test_sizes_and_encodings():
    fits = json.dumps({"type": "PATH", "pathName": "x", "n": ""})
    fits = fits[:-2] + "y" * (65536 - len(fits)) + fits[-2:]
    assert len(fits) == 65536
    parse(fits)
    assert outcome(fits + " ") == {"code": "too-large", "path": "$"}
    assert outcome("é" * 32769) == {"code": "too-large", "path": "$"}
    assert outcome(b"\xff\xfe{\x00") == {"code": "bad-encoding", "path": "$"}
    with pytest.raises(PlanError, match="UTF-16"):
        parse('{"type":"ACTION"}'.encode("utf-16"))
    assert outcome("\ufeff") == {"code": "empty", "path": "$"}
    assert outcome("\ufeff\ufeff{}") == {"code": "bad-json", "path": "$"}


@pytest.mark.parametrize(
    "fields, error",
    [
        ({"version": 2}, ("out-of-range", "$.version")),
        ({"version": 0}, ("out-of-range", "$.version")),
        ({"version": True}, ("wrong-type", "$.version")),
        ({"version": "1"}, ("wrong-type", "$.version")),
        ({"id": 5}, ("wrong-type", "$.id")),
        ({"name": None}, ("wrong-type", "$.name")),
        ({"name": "x" * 129}, ("out-of-range", "$.name")),
        ({"frame": "red"}, ("out-of-range", "$.frame")),
        ({"frame": 1}, ("wrong-type", "$.frame")),
    ],
)
def test_meta_rejected(fields, error):
    assert outcome(json.dumps({**act(1), **fields})) == dict(zip(("code", "path"), error, strict=True))


def test_meta_kept_and_compared():
    text = json.dumps({**act(1), "version": 1, "id": "a", "name": "b" * 128, "frame": "alliance"})
    plan = parse(text)
    assert plan.meta.by_alliance
    assert not plan.warnings
    assert parse(plan.dump()) == plan != parse(json.dumps(act(1)))
    nested = parse(json.dumps(seq({**act(1), "version": 1})))
    assert [warning.path for warning in nested.warnings] == ["$.children[0].version"]


def test_order_of_checks():
    both = {"type": "PATH", "path": None, "pathName": 3}
    assert outcome(json.dumps(both))["path"] == "$.pathName"
    assert outcome('{"type":"POSE","pose":{"x":99,"y":"a","rotation":0}}')["path"] == "$.pose.y"
    assert outcome(json.dumps(par(pose(1, 1), pose(2, 2), {"type": "NO"})))["code"] == "unknown-type"
    assert outcome(json.dumps({"type": "X", "version": 9}))["code"] == "unknown-type"
    assert outcome(json.dumps({"type": "POSE", "version": 9}))["path"] == "$.version"


def test_drive_conflict_at_any_depth():
    plan = par(seq(act(1), pose(1, 1)), act(2), seq(par(pose(2, 2))))
    assert outcome(json.dumps(plan)) == {"code": "parallel-drive-conflict", "path": "$.children[2]"}


def test_warnings_are_bounded():
    plan = parse(json.dumps({**act(1), **{f"f{i}": 0 for i in range(200)}}))
    assert len(plan.warnings) == 51
    assert plan.warnings[-1].code == "more"
    assert "150" in plan.warnings[-1].message


def test_field_and_limits():
    text = json.dumps(pose(16.6, 0))
    assert outcome(text)["code"] == "off-field"
    parse(text, field=Field(margin_m=0.1))
    parse(text, field=robotlib.FIELD_2025)
    near = parse(json.dumps(pose(0.2, 4)), field=Field(robot_half_size_m=0.45))
    assert [warning.code for warning in near.warnings] == ["near-edge"]
    assert outcome(json.dumps(seq(act(1), act(2))), limits=Limits(max_nodes=2))["code"] == "too-many-nodes"
    assert Field() == FIELD_2026
    assert outcome('{"type":"ACTION","actionId":' + "1" * 5000 + "}", limits=Limits(max_digits=9999))["path"] == "$"


def test_hostile_names_in_texts():
    for name in ("a\nb" * 60, "\ud800" * 300, "\u2028x"):
        with pytest.raises(PlanError) as caught:
            parse(json.dumps({"type": name}))
        assert caught.value.message.isprintable()
        caught.value.message.encode("utf-8")
    with pytest.raises(PlanError, match="Did you mean SEQUENCE"):
        parse('{"type":"sequence"}')


@pytest.mark.parametrize(
    "text",
    [
        '"' + '\\"' * 32767,
        '{"a":"' + '\\"' * 32760,
        "[" * 65536,
        '"' * 65536,
        "[]" * 32768,
        "[" + "[]," * 21845,
        '{"type":"ACTION","actionId":1,"x":[' + "[]," * 21000 + "0]}",
        "1" * 65536,
        ("1" * 32 + " ") * 1985,
        "[" + "1," * 32767,
        '{"type":"ACTION",' + ",".join(f'"{i}":0' for i in range(7000)) + "}",
        "\\" * 65536,
        "-" * 65536,
        "\u00e9" * 32768,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_linear_time(text):
    assert len(text) <= 65536
    best = 1.0
    for _ in range(3):
        begin = time.process_time()
        outcome(text)
        outcome(text.encode("utf-8"))
        best = min(best, (time.process_time() - begin) / 2)
    assert best < 0.05


def test_extensions():
    text = json.dumps({"type": "RACE", "children": [{"type": "WAIT", "seconds": 1.5}, act(1)]})
    assert outcome(text) == {"code": "unknown-type", "path": "$.type"}
    plan = parse(text, extra_types=EXTENSIONS)
    assert parse(plan.dump(), extra_types=EXTENSIONS) == plan
    for seconds, code in ((61, "out-of-range"), (-1, "out-of-range"), ("1", "wrong-type"), (True, "wrong-type")):
        wait = json.dumps({"type": "WAIT", "seconds": seconds})
        assert outcome(wait, extra_types=EXTENSIONS) == {"code": code, "path": "$.seconds"}
    assert outcome('{"type":"WAIT"}', extra_types=EXTENSIONS) == {"code": "missing-field", "path": "$.seconds"}
    for name in ("RACE", "DEADLINE"):
        clash = json.dumps({"type": name, "children": [pose(1, 1), pose(2, 2)]})
        assert outcome(clash, extra_types=EXTENSIONS)["code"] == "parallel-drive-conflict"
        empty = json.dumps({"type": name, "children": []})
        assert outcome(empty, extra_types=EXTENSIONS)[1] == ["empty-group"]


def test_team_type():
    def read(obj, context):
        return robotlib.ActionNode(int(context.number(obj, "level", 0, 3)), context.path)

    lift = ExtraType(read, lambda node, leaves: None, fields=("level",))
    plan = parse('{"type":"LIFT","level":2,"x":1}', extra_types={"LIFT": lift})
    assert plan.root == robotlib.ActionNode(2)
    assert [warning.path for warning in plan.warnings] == ["$.x"]
    with pytest.raises(RegistryError, match="built-in"):
        parse("{}", extra_types={"POSE": lift})
    broken = ExtraType(lambda obj, context: 1 / 0, lambda node, leaves: None)
    assert outcome('{"type":"B"}', extra_types={"B": broken}) == {"code": "wrong-type", "path": "$"}


def test_from_dict_is_as_strict():
    with pytest.raises(PlanError, match="not-finite"):
        from_dict(pose(float("nan"), 1))
    with pytest.raises(PlanError, match="not-finite"):
        from_dict(pose(10**400, 1))
    with pytest.raises(PlanError, match="too-deep"):
        loop = seq()
        loop["children"].append(loop)
        from_dict(loop)
    assert from_dict({**act(1), 5: 6}).warnings[0].path == "$.5"


def test_plan_views():
    plan = parse(json.dumps(seq(act(1), par(pose(1, 2), act(3)))))
    assert [node.path for node in plan.walk()] == [
        "$",
        "$.children[0]",
        "$.children[1]",
        "$.children[1].children[0]",
        "$.children[1].children[1]",
    ]
    assert plan.find("$.children[1]").type == "PARALLEL"
    assert plan.poses() == (Pose2(1.0, 2.0, 0.0),)
    assert [leaf.type for leaf in plan.leaves()] == ["ACTION", "POSE", "ACTION"]
    assert plan.node_count == 5
    with pytest.raises(KeyError):
        plan.find("$.nowhere")


def interpreters():
    """Every other supported Python that a name on PATH or a version folder of pyenv offers."""
    from pathlib import Path
    from shutil import which

    names = [which(f"python3.{minor}") for minor in range(11, 16)]
    names += [str(path) for path in sorted(Path.home().glob(".pyenv/versions/3.1[1-9].*/bin/python"))]
    found = {}
    for name in filter(None, names):
        probe = [name, "-c", "import sys; print(sys.version_info[:2])"]
        answer = subprocess.run(probe, capture_output=True, text=True, check=False)
        if answer.returncode == 0:  # a shim of a version that is not chosen fails here
            found.setdefault(answer.stdout.strip(), name)
    return found


def test_every_installed_python():
    from pathlib import Path

    found = interpreters() or {"this": sys.executable}
    root = Path(robotlib.__file__).parents[1]
    vectors = Path(__file__).parents[1] / "vectors" / "plan_cases.json"
    for version, python in found.items():
        command = [python, "-W", "error", "-c", CASE_PROGRAM, str(root), str(vectors)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, (version, answer.stderr)
        assert json.loads(answer.stdout) == [], version
