"""Which faults come when: all from one seed, so that a run that fails can be had again."""

import random
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["KINDS", "PHONES", "Fault", "faults"]

# Cards of a deck, which is shuffled and dealt whole: every kind has come after two minutes or so.
KINDS = {
    "unplug": 10,  # after some bytes of a transfer
    "phone-reboot": 1,  # gone for longer, back as a native device
    "swap": 1,  # two phones change sockets
    "app-restart": 1,
    "app-deaf": 1,  # does not read: the phone NAKs every transfer
    "stutter": 1,  # transfers are accepted in pieces
    "stall": 1,  # the endpoints halt
    "robot-restart": 4,  # with other types, other values, and another layout of the struct
    "robot-frozen": 1,
    "daemon-killed": 1,
    "daemon-restart": 1,
    "reload-good": 1,
    "reload-bad": 1,
    "udp-flood": 1,
    "log-blocked": 1,  # nobody reads the log, and its pipe is full
    "disk-full": 1,
    "clock-step": 1,
    "memory-pressure": 1,  # the daemon gets no more memory
}
TOGETHER = 0.25  # of the faults come while the one before has not healed
BOTH = 0.8  # of the unplugs hit both phones, each at a byte of its own
PHONES = ("p1", "p2")


class Fault(NamedTuple):
    """One fault; ``size`` in 0..1 says how much or how long, ``after_s`` the pause after healing."""

    kind: str
    phone: str
    size: float
    after_s: float
    together: bool
    both: bool


def faults(seed: int, kinds: list[str] | None = None) -> Iterator[Fault]:
    """The faults of a seed, for ever."""
    rng = random.Random(seed)
    cards = [name for name, count in KINDS.items() if kinds is None or name in kinds for _ in range(count)]
    while True:
        rng.shuffle(cards)
        for kind in cards:
            yield Fault(
                kind, rng.choice(PHONES), rng.random(), rng.uniform(0.0, 0.4), rng.random() < TOGETHER,
                rng.random() < BOTH,
            )  # fmt: skip
