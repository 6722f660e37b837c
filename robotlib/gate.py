"""Which press may start the robot, and whether the phone is alive. Pure; times in microseconds of the NT clock."""

from __future__ import annotations

import math
from collections import deque

from .inputs import TRUE, Inputs
from .settings import Settings

__all__ = ["REASONS", "WAITING", "Heartbeat", "PressMemory", "us"]

# In the order in which they are tested; the texts go to the phone.
REASONS = {
    "wrong-value-type": "The press is not a boolean.",
    "before-boot": "The press is older than this robot program.",
    "too-old": "The press is too old.",
    "bad-clock": "The press is from the future; the clocks differ.",
    "already-used": "This press was used before.",
    "no-heartbeat": "No sign of life from the phone's bridge.",
    "fms-locked": "Phone starts are locked while the field is connected.",
    "mode": "Phone starts are not allowed in this mode.",
    "estop": "The robot is emergency-stopped.",
    "disabled": "The robot is disabled.",
    "running": "A plan is running.",
    "not-ready": "No plan is ready.",
    "nothing-to-do": "The plan has no step that does something.",
    "stale-pose": "No fresh target came with the press.",
    "drive-busy": "Something else uses the drive.",
}

# The same for Status/Waiting, where short words fit the list.
WAITING = {
    "no-heartbeat": "no heartbeat",
    "fms-locked": "phone starts are locked by the FMS",
    "mode": "phone starts are not allowed in this mode",
    "estop": "emergency stop",
    "disabled": "disabled",
    "running": "running",
}

MAX_FUTURE_STAMPS = 16  # replays from before a reboot, one per client and topic


def us(seconds: float) -> int:
    """Return microseconds."""
    return round(seconds * 1_000_000)


class PressMemory:
    """The presses of one topic that were considered, accepted or refused: none counts twice."""

    def __init__(self) -> None:
        self._last_us: int | None = None
        # Stamps ahead of the clock are remembered one by one: as "last" they would lock the topic until the clock
        # gets there, and then let the same stale press through.
        self._ahead_us: deque[int] = deque(maxlen=MAX_FUTURE_STAMPS)

    def consider(self, value: int, stamp_us: int, now_us: int, boot_us: int, settings: Settings) -> str:
        """Return why this press does not count, "" if it does; either way it is used up."""
        reason = self._judge(value, stamp_us, now_us, boot_us, settings)
        if stamp_us > now_us + us(settings.press_max_future_s):
            if stamp_us not in self._ahead_us:
                self._ahead_us.append(stamp_us)
        elif self._last_us is None or stamp_us > self._last_us:
            self._last_us = stamp_us
        return reason

    def _judge(self, value: int, stamp_us: int, now_us: int, boot_us: int, settings: Settings) -> str:
        if value != TRUE:
            return "wrong-value-type"
        if stamp_us <= boot_us:
            return "before-boot"
        age_us = now_us - stamp_us
        if age_us > us(settings.press_max_age_s):
            return "too-old"
        if age_us < -us(settings.press_max_future_s):
            return "bad-clock"
        return "already-used" if self._used(stamp_us, us(settings.replay_slack_s)) else ""

    def _used(self, stamp_us: int, slack_us: int) -> bool:
        if self._last_us is not None and stamp_us <= self._last_us + slack_us:
            return True
        return any(abs(stamp_us - ahead_us) <= slack_us for ahead_us in self._ahead_us)


class Heartbeat:
    """Alive means that the value changes. Two spellings of the topic are two topics."""

    def __init__(self) -> None:
        self._values: dict[int, float] = {}
        self._alive_us: int | None = None

    def on_inputs(self, inputs: Inputs, settings: Settings) -> None:
        """Take one loop's heartbeats."""
        for topic, exists in enumerate(inputs.heartbeat_exists):
            if not exists:
                self.on_gone(topic)
        beats = zip(inputs.heartbeat_topics, inputs.heartbeat_values, inputs.heartbeat_stamps_us, strict=True)
        for topic, value, stamp_us in beats:
            self.on_value(topic, value, stamp_us, inputs.now_us, settings)

    def on_gone(self, topic: int) -> None:
        """Forget the topic's value: the next one is the first after a connect."""
        self._values.pop(topic, None)

    def on_value(self, topic: int, value: float, stamp_us: int, now_us: int, settings: Settings) -> None:
        """Take one value; the first after a connect may be an old one sent again and counts by its own age."""
        if not math.isfinite(value):
            return
        known = self._values.get(topic)
        self._values[topic] = value
        if known is None:
            age_us = now_us - stamp_us
            if not -us(settings.press_max_future_s) <= age_us <= us(settings.heartbeat_timeout_s):
                return
        elif value == known:
            return
        self._alive_us = now_us

    def alive(self, now_us: int, settings: Settings) -> bool:
        """Return True if a change came within the timeout."""
        if self._alive_us is None:
            return False
        return 0 <= now_us - self._alive_us <= us(settings.heartbeat_timeout_s)

    def link(self, now_us: int, settings: Settings) -> str:
        """Return ok, lost, or none if there never was a sign of life."""
        if self._alive_us is None:
            return "none"
        return "ok" if self.alive(now_us, settings) else "lost"
