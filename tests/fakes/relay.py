"""The relay as observer and surfaces see it: a real core, and NetworkTables as plain attributes."""

from collections.abc import Sequence
from typing import Any

from aoabridge.config import Config, default_config
from aoabridge.config.sections import NtSection
from aoabridge.daemon.observer import Observer, PhoneFacts
from aoabridge.daemon.way_to_robot import WayToRobot
from aoabridge.values import ClockSync, Publication, Withdrawal
from fakes.core_rig import CoreRig


class FakeNt:
    def __init__(self) -> None:
        self.counters: dict[str, int] = {"nt_sets": 5, "nt_bad_utf8": 0}
        self.address: str | None = None
        self.targets: tuple[str, ...] = ("10.64.58.2:5810",)
        self.blocked = False
        self.overloaded = False


class FakeRelay:
    def __init__(self, rig: CoreRig) -> None:
        self.core = rig.core
        self.nt = FakeNt()
        self.clock_sync = ClockSync(0, 0, valid=False)
        self.connected_at: float | None = None
        self.losses = 0
        self.lost_at: float | None = None
        self.published: list[Publication | Withdrawal] = []

    def publish(self, items: Sequence[Publication | Withdrawal], *, urgent: bool = True, steady: bool = False) -> None:
        self.published += items


class FakeWay(WayToRobot):
    """What is found is set by the test; ``asked`` = whether the robot was looked for at the last tick."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = False

    def tick(self, looking: bool, targets: Sequence[str], team: int | None, now: float) -> None:
        self.asked = looking


class ObserverRig:
    """An observer on virtual time; one phone called phone1 is linked."""

    def __init__(self, config: Config | None = None, **nt: Any) -> None:
        self.rig = CoreRig(connected=False)
        self.relay = FakeRelay(self.rig)
        self.way = FakeWay()
        self.has_network = True
        self.phones = [PhoneFacts("phone1", "live", "1-1", link=1, serial="ABC123", since=self.rig.now)]
        settings = NtSection(**{"team": 6458, **nt})
        self.observer = Observer(
            config or Config(**{**_fields(default_config("pi")), "nt": settings}),
            self.relay,  # type: ignore[arg-type]  # as much of it as is looked at
            lambda: self.phones,
            lambda _now: (),
            started=self.rig.now,
            way=self.way,
            has_network=lambda: self.has_network,
        )
        self.board = self.observer.board

    @property
    def now(self) -> float:
        return self.rig.now

    def wait(self, seconds: float, step_s: float = 0.5) -> None:
        """Let time pass, with a look every half second."""
        end = self.rig.now + seconds
        while self.rig.now < end - 1e-9:
            self.rig.wait(min(step_s, end - self.rig.now))
            self.observer.tick(self.rig.now)

    def connect(self) -> None:
        self.relay.connected_at, self.relay.nt.address = self.now, "10.64.58.2:5810"
        self.rig.connect()

    def lose(self) -> None:
        self.relay.connected_at = self.relay.nt.address = None
        self.relay.losses += 1
        self.relay.lost_at = self.now
        self.rig.disconnect()

    def codes(self) -> list[str]:
        return [issue.code for issue in self.board.open_issues()]

    def issue(self, code: str) -> Any:
        return next(issue for issue in self.board.open_issues() if issue.code == code)

    def snapshot(self) -> dict[str, Any]:
        return self.observer.snapshot(self.now)


def _fields(config: Config) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__struct_fields__}
