"""Every accessory case that pure code decides, against the emulated phone on a virtual clock."""

import pytest

from contract.cases import failures, load_runs
from contract.policy_rig import play_policy

RUNS = load_runs("policy")


def test_there_are_cases():
    assert RUNS


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.ident)
def test_case(run):
    assert failures(run.expect, play_policy(run)) == []
