"""A link that is over leaves nothing in memory, whatever was under way."""

import gc
import weakref
from collections.abc import Callable

import pytest

from fakes.core_rig import CoreRig


def idle(rig: CoreRig) -> None:
    rig.lines()


def a_value_in_flight(rig: CoreRig) -> None:
    assert rig.core.take_bytes(1, rig.now)


def half_a_value_sent(rig: CoreRig) -> None:
    rig.lines()
    rig.update("/text", "x" * 40_000)
    sent = rig.core.take_bytes(1, rig.now)
    rig.core.on_bytes_accepted(1, len(sent) - 100, rig.now)


def a_value_that_waits(rig: CoreRig) -> None:
    rig.lines()
    rig.update("/text", "later")


@pytest.mark.parametrize("every_sample", [False, True])
@pytest.mark.parametrize("moment", [idle, a_value_in_flight, half_a_value_sent, a_value_that_waits])
def test_an_ended_link_is_freed(moment: Callable[[CoreRig], None], *, every_sample: bool) -> None:
    rig = CoreRig()
    rig.announce("/text", "string", "first")
    rig.say({"action": "subscribe", "keys": ["/text"], "all": every_sample})
    moment(rig)
    link = weakref.ref(rig.core.links[1])
    rig.core.on_link_down(1, rig.now)
    gc.collect()
    assert link() is None
