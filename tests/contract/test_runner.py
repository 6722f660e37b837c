"""The case runner itself: switches, script items, injected results and metrics beyond those of the shared cases."""

from pathlib import Path

import pytest

from contract.cases import expand, failures, load_runs, near
from contract.evidence import Measured
from contract.policy_rig import play_policy

CASES = Path(__file__).resolve().parents[1] / "vectors" / "rig_cases.json"
RUNS = load_runs("policy", CASES)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.ident)
def test_case_on_the_virtual_clock(run):
    assert failures(run.expect, play_policy(run)) == []


@pytest.mark.parametrize(
    ("op", "value", "wanted", "good"),
    [
        ("==", None, None, True),
        ("==", 1, 2, False),
        ("<=", 2, 2, True),
        ("<=", None, 2, False),
        (">=", 3, 2, True),
        ("in", "LIVE", ["LINKED", "LIVE"], True),
        ("contains", ["usb-busy"], "usb-busy", True),
        ("contains", None, "usb-busy", False),
        ("~=", [0, 31.9, 85.6], [0, 30, 90], True),
        ("~=", [0, 33, 90], [0, 30, 90], False),
        ("~=", [0, 30], [0, 30, 90], False),
    ],
)
def test_operators(op, value, wanted, good):
    assert (failures([("x", op, wanted)], Measured({"x": value})) == []) is good


def test_a_metric_that_a_rig_lacks_fails_instead_of_passing():
    assert failures([("unheard_of", "==", 0)], Measured({})) == ["unheard_of: this rig does not supply it"]


def test_a_run_of_which_nothing_can_be_judged_fails():
    assert failures([("x", "==", 0)], Measured({"x": 0}), skip=("x",)) == ["nothing to judge on this rig"]


def test_near_is_two_seconds_or_five_percent():
    assert near(2, 0)
    assert near(535, 510)
    assert not near(537, 510)


def test_variants_override_add_and_replace():
    case = {
        "id": "V",
        "name": "v",
        "rigs": ["policy"],
        "phones": [{"app": "silent", "locked": True}],
        "host": {"devices.max": 2},
        "script": [{"at": 0, "do": "plug"}],
        "expect": [["start", "==", 1]],
        "variants": [
            {"phones": [{"locked": False}, {"name": "b"}], "script_extra": [{"at": 1, "do": "end"}]},
            {
                "host": {"devices.reset_stuck": True},
                "expect": [["reset", "==", 0]],
                "expect_extra": [["claims", "==", 1]],
            },
        ],
    }
    first, second = expand(case)
    assert first.phones == ({"app": "silent", "locked": False}, {"name": "b"})
    assert [item["do"] for item in first.script] == ["plug", "end"]
    assert second.host == {"devices.max": 2, "devices.reset_stuck": True}
    assert second.expect == (("reset", "==", 0), ("claims", "==", 1))
