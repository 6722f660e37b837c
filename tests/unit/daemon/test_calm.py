"""An idle bridge looks rarely and lives on; whatever happens is looked at at the next beat."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aoabridge.bridge.link import LinkInfo
from aoabridge.config import default_config
from aoabridge.daemon.calm import LOOK_S, QUIET_S, Calm
from aoabridge.daemon.observer import PERIOD_S
from aoabridge.daemon.phones import PhoneHost
from aoabridge.daemon.service import Bridge
from aoabridge.status.popups import POPUP_TOPIC
from aoabridge.values import ClockSync, Connected, Disconnected, NtEvent, Publication, Withdrawal


class IdleBridge:
    """A bridge with an empty USB bus and NetworkTables that only the test moves; half seconds pass on demand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.looks = 0
        self.published: list[Any] = []
        self.bridge = Bridge(
            default_config("pi"),
            None,
            phones=lambda *args, **more: PhoneHost(*args, **more, scan=lambda: (), open_watcher=lambda: None),
            clock=lambda: self.now,
        )
        monkeypatch.setattr(self.bridge.observer, "tick", self._counted(self.bridge.observer.tick))
        monkeypatch.setattr(self.bridge.surfaces, "_wall", lambda: 1e9 + self.now)
        monkeypatch.setattr(self.bridge.relay, "publish", lambda items, **_: self.published.extend(items))

    def _counted(self, look: Callable[[float], None]) -> Callable[[float], None]:
        def counted(now: float) -> None:
            self.looks += 1
            look(now)

        return counted

    def wait(self, seconds: float) -> int:
        """Let time pass; returns how many looks it had."""
        before = self.looks
        for _ in range(round(seconds / PERIOD_S)):
            self.now += PERIOD_S
            self.bridge._observe()
        return self.looks - before

    def happen(self, event: NtEvent) -> None:
        self.bridge.relay._feed([event], self.now)

    def beats(self) -> list[Any]:
        values = [i.value for i in self.published if isinstance(i, Publication) and i.topic.endswith("/pi/heartbeat")]
        self.published.clear()
        return values


def idle(monkeypatch: pytest.MonkeyPatch, play: Callable[[IdleBridge], None]) -> None:
    async def run() -> None:
        rig = IdleBridge(monkeypatch)
        assert rig.bridge.usb is not None
        rig.bridge.usb.start()
        rig.wait(20)
        rig.beats()
        try:
            play(rig)
        finally:
            await rig.bridge.stop()

    asyncio.run(run())


def test_calm_begins_after_quiet_and_ends_with_any_sign() -> None:
    calm = Calm()
    looks = [now / 2 for now in range(40) if calm.wants_look(1, now / 2, busy=False)]
    assert looks == [*(n / 2 for n in range(6)), QUIET_S - 0.5 + LOOK_S, QUIET_S - 0.5 + 2 * LOOK_S, 17.5]
    assert calm.wants_look(2, 20.0, busy=False)
    assert calm.wants_look(2, 20.0 + QUIET_S, busy=True)
    assert calm.wants_look(2, 20.5 + QUIET_S, busy=False), "quiet counts from the end of what went on"


def test_an_idle_bridge_looks_every_few_seconds_and_its_heart_beats_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(rig: IdleBridge) -> None:
        assert rig.wait(20) == 20 / LOOK_S
        values = rig.beats()
        assert len(values) == 40
        assert values == list(range(values[0], values[0] + 40))

    idle(monkeypatch, play)


def test_the_figures_of_each_second_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(rig: IdleBridge) -> None:
        rig.bridge.relay.clock_sync = ClockSync(0, 0, valid=True)
        rig.wait(LOOK_S + 1)
        rig.published.clear()
        for second in range(4):
            rig.bridge.relay.clock_sync = ClockSync(second, 7, valid=True)
            rig.wait(1)
        shown = {
            name: [i.value for i in rig.published if i.topic.endswith(name)] for name in ("uptimeSec", "offset_us")
        }
        assert shown["uptimeSec"] == [shown["uptimeSec"][0] + second for second in range(4)]
        assert shown["offset_us"] in ([0, 1, 2, 3], [1, 2, 3])

    idle(monkeypatch, play)


def test_a_board_that_gets_too_little_power_says_so_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(rig: IdleBridge) -> None:
        rig.wait(LOOK_S)
        monkeypatch.setattr(rig.bridge.surfaces._probe, "_is_throttled", lambda: True)
        rig.wait(1.5)
        assert "usb-power" in {issue.code for issue in rig.bridge.observer.board.open_issues()}

    idle(monkeypatch, play)


@pytest.mark.parametrize(
    "event",
    [Connected("10.0.0.2:5810"), Disconnected()],
    ids=["connected", "lost"],
)
def test_what_the_robot_does_is_looked_at_at_once(monkeypatch: pytest.MonkeyPatch, event: NtEvent) -> None:
    def play(rig: IdleBridge) -> None:
        rig.wait(LOOK_S)
        rig.happen(event)
        assert rig.wait(QUIET_S) == QUIET_S / PERIOD_S

    idle(monkeypatch, play)


def test_a_clock_that_is_compared_again_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(rig: IdleBridge) -> None:
        for _ in range(20):
            rig.happen(ClockSync(5, 7, valid=True))
            rig.wait(0.5)
        assert rig.looks <= 6 + 30 / LOOK_S

    idle(monkeypatch, play)


def test_a_link_is_looked_at_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nobody:
        def ready(self, _link: int) -> bool:
            return False

    def play(rig: IdleBridge) -> None:
        rig.bridge.relay.link_up(Nobody(), 1, LinkInfo("phone", 64))  # type: ignore[arg-type]
        assert rig.wait(30) == 30 / PERIOD_S
        rig.bridge.relay.link_down(1)
        assert rig.wait(QUIET_S) == QUIET_S / PERIOD_S
        assert rig.wait(LOOK_S) == 1

    idle(monkeypatch, play)


def test_an_issue_of_a_reload_is_shown_at_the_next_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(rig: IdleBridge) -> None:
        rig.bridge.observer.board.set("config-rejected", "config", True, rig.now, data={"error": "x"})
        rig.wait(0.5)
        (issues,) = [i.value for i in rig.published if i.topic.endswith("/pi/issues")]
        assert "config-rejected:config" in issues

    idle(monkeypatch, play)


def test_a_refusal_for_another_reason_is_shown_at_the_next_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(rig: IdleBridge) -> None:
        for error in ("x", "y"):
            rig.bridge.observer.board.set("config-rejected", "config", True, rig.now, data={"error": error})
            assert rig.wait(0.5) == 1
            rig.wait(2 * LOOK_S)

    idle(monkeypatch, play)


def test_a_recording_that_was_over_at_once_is_shown_at_the_next_beat(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def play(rig: IdleBridge) -> None:
        rig.bridge.recording.start(rig.now, tmp_path / "short.wpilog")
        rig.bridge.recording.stop(rig.now)
        rig.wait(0.5)
        (file,) = [i.value for i in rig.published if i.topic.endswith("/record/file")]
        assert file == str(tmp_path / "short.wpilog")

    idle(monkeypatch, play)


def test_a_pop_up_has_its_turn_and_is_taken_back_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(rig: IdleBridge) -> None:
        board, told = rig.bridge.observer.board, []
        for half in range(20):
            if half in (0, 2):  # refused, accepted and refused again: the second pop-up waits for 5 s
                for active in (False, True):
                    board.set("config-rejected", "config", active, rig.now, data={"error": "x"})
            rig.wait(0.5)
            told += [(half / 2, type(item)) for item in rig.published if item.topic == POPUP_TOPIC]
            rig.published.clear()
        assert told == [(0.0, Publication), (1.0, Withdrawal), (5.0, Publication), (6.0, Withdrawal)]
        assert rig.wait(20) <= 2 + 20 / LOOK_S

    idle(monkeypatch, play)


def test_a_late_beat_is_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(rig: IdleBridge) -> None:
        rig.wait(LOOK_S)
        before = rig.looks
        rig.now += 0.3
        rig.wait(0.5)
        assert rig.looks == before + 1

    idle(monkeypatch, play)


def test_what_is_wrong_with_the_machine_stays_open_between_its_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(rig: IdleBridge) -> None:
        board = rig.bridge.observer.board
        for code, subject in (("usb-power", "power"), ("usb-none", "usb")):
            board.set(code, subject, True, rig.now, data={"n": 1}, hold=False)
        usb = rig.bridge.usb
        assert usb is not None
        rig.bridge._watch_usb(usb, rig.now)
        assert {"usb-power", "usb-none"} <= {issue.code for issue in board.open_issues()}

    idle(monkeypatch, play)


@pytest.mark.parametrize("ahead_s", [None, 0.0, 0.01, 0.2, 0.25, 0.3, 0.499, -0.001])
def test_looks_fall_together_with_the_heartbeat(monkeypatch: pytest.MonkeyPatch, ahead_s: float | None) -> None:
    def play(rig: IdleBridge) -> None:
        beat_at = None if ahead_s is None else rig.now + ahead_s
        monkeypatch.setattr(rig.bridge.relay.core._heartbeat, "next_due", lambda: beat_at)
        pause_s = rig.bridge._pause_s(rig.now)
        if beat_at is None:
            assert pause_s == PERIOD_S
        else:
            beats = (rig.now + pause_s - beat_at) / PERIOD_S
            assert beats == pytest.approx(round(beats))
            assert 0.5 * PERIOD_S < pause_s <= 1.5 * PERIOD_S

    idle(monkeypatch, play)
