"""A campaign in small, one fault of the kinds that cost no time; the long ones are `./dev faults`."""

import pytest

from faults.campaign import Campaign

QUICK = ["app-restart", "app-deaf", "stutter", "robot-restart", "reload-bad"]


@pytest.mark.usbfs
@pytest.mark.parametrize("minutes", [0.05, pytest.param(3.0, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
def test_nothing_is_wrong_whatever_breaks(minutes):
    campaign = Campaign(7, QUICK if minutes < 1 else None)
    campaign.run(minutes)
    assert campaign.judge.faults == []
    assert campaign.injected
    assert campaign.judge.counts["puts arrived"]
    assert campaign.judge.counts["values heard"]
