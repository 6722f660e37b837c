"""Long accessory cases: in full with `--soak`, else in a short form of half a minute."""

import pytest

from contract.cases import failures, load_runs
from contract.fake_rig import play_fake
from contract.usbfs_rig import play_usbfs

RUNS = load_runs("soak")
SHORT_S = 30.0
HOURS = 3600
PLAYERS = {"fake": play_fake, "usbfs": play_usbfs}


def players(run):
    """The rigs in real time that a long run names, the pyusb backend if it names none."""
    return [name for name in PLAYERS if name in run.rigs] or ["fake"]


SHORT = [run for run in RUNS if not set(PLAYERS) & set(run.rigs)]  # the others run short in their own suites
FULL = [(run, name) for run in RUNS for name in players(run)]


def test_there_are_cases():
    assert RUNS


if SHORT:  # an empty parameter set would be a skipped test

    @pytest.mark.timeout(300)
    @pytest.mark.parametrize("run", SHORT, ids=lambda run: run.ident)
    def test_short_form(run):
        assert failures(run.expect, play_fake(run.short(SHORT_S), SHORT_S)) == []


@pytest.mark.soak
@pytest.mark.timeout(12 * HOURS)
@pytest.mark.parametrize(("run", "rig"), FULL, ids=[f"{run.ident}-{name}" for run, name in FULL])
def test_in_full(run, rig):
    assert failures(run.expect, PLAYERS[rig](run)) == []
