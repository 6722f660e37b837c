"""Every accessory case with the real daemon on real libusb, over phones emulated below the kernel interface."""

import pytest

from contract.cases import failures, load_runs
from contract.usbfs_rig import UNSEEN, play_usbfs

pytestmark = pytest.mark.usbfs
RUNS = load_runs("usbfs")
SHORT_S = 25.0  # repetitions end after this; `soak` plays them all
OTHER_RIGS = ("udev_sets_power_on", "udev_group", "udev_mode", "udev_tag")


def test_there_are_cases():
    assert RUNS


@pytest.mark.timeout(300)
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.ident)
def test_case(run):
    assert failures(run.expect, play_usbfs(run, SHORT_S), skip=OTHER_RIGS + UNSEEN) == []
