"""What phones are told unasked."""

from typing import Any

import msgspec

from fakes.core_rig import CoreRig


def configured(rig: Any, **changes: Any) -> None:
    rig.core.configure(msgspec.structs.replace(rig.core.settings, **changes))


def lists_within(rig: Any, seconds: float) -> int:
    """How many topic lists come in this time."""
    found = 0
    for _ in range(round(seconds / 0.05)):
        rig.wait(0.05)
        found += sum("topics" in line for line in rig.lines())
    return found


def test_another_period_holds_for_the_list_that_waits_already() -> None:
    rig = CoreRig(connected=False)
    assert lists_within(rig, 2.0) == 0
    configured(rig, topics_period_s=3.0)
    assert lists_within(rig, 1.2) == 1
    assert lists_within(rig, 3.0) == 1
    configured(rig, topics_period_s=10.0)
    assert lists_within(rig, 9.0) == 0
    assert lists_within(rig, 1.0) == 1
