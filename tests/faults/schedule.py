"""Which faults come when: all from one seed, so that a run that fails can be had again."""

import random
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["KINDS", "Fault", "faults"]

# How often each kind comes, relative to the others.
KINDS = {
    "unplug": 4,  # after some bytes of a transfer
    "phone-reboot": 1,  # gone for longer, back as a native device
    "swap": 1,  # two phones change sockets
    "app-restart": 2,
    "app-deaf": 2,  # does not read: the phone NAKs every transfer
    "stutter": 1,  # transfers are accepted in pieces
    "stall": 1,  # the endpoints halt
    "robot-restart": 3,  # with other types, other values, and another layout of the struct
    "robot-frozen": 2,
    "daemon-killed": 2,
    "daemon-restart": 1,
    "reload-good": 1,
    "reload-bad": 1,
    "udp-flood": 1,
    "log-blocked": 1,  # nobody reads the log
}
TOGETHER = 0.25  # of the faults come while the one before has not healed
PHONES = ("p1", "p2")


class Fault(NamedTuple):
    """One fault; ``size`` in 0..1 says how much or how long, ``after_s`` the pause after healing."""

    kind: str
    phone: str
    size: float
    after_s: float
    together: bool


def faults(seed: int, kinds: list[str] | None = None) -> Iterator[Fault]:
    """The faults of a seed, for ever."""
    rng = random.Random(seed)
    names = kinds or list(KINDS)
    while True:
        yield Fault(
            rng.choices(names, [KINDS[name] for name in names])[0],
            rng.choice(PHONES),
            rng.random(),
            rng.uniform(0.2, 1.0),
            rng.random() < TOGETHER,
        )
