"""The status topics: names, types, and when each is published. Knows an NT instance by its methods only."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ._version import __version__
from .model import Pose2
from .settings import Settings
from .status import PROTOCOL, Status

__all__ = ["StatusTopics"]

SCHEMAS = (
    ("struct:Translation2d", "double x;double y"),
    ("struct:Rotation2d", "double value"),
    ("struct:Pose2d", "Translation2d translation;Rotation2d rotation"),
)
# Topic, publisher kind, status field; published when it changes.
_TOPICS = (
    ("State", "string", "state"),
    ("Ready", "boolean", "ready"),
    ("Waiting", "strings", "waiting"),
    ("Refused", "string", "refused"),
    ("PlanId", "string", "plan_id"),
    ("RunningId", "string", "running_id"),
    ("PlanName", "string", "plan_name"),
    ("RunId", "int", "run_id"),
    ("Retained", "boolean", "retained"),
    ("RunSource", "string", "run_source"),
    ("Running", "strings", "running"),
    ("RunningText", "strings", "running_text"),
    ("Error", "string", "error"),
    ("ErrorCode", "string", "error_code"),
    ("ErrorPath", "string", "error_path"),
    ("Warnings", "strings", "warnings"),
    ("Link", "string", "link"),
    ("Alliance", "string", "alliance"),
    ("Actions", "string", "actions"),
    ("Paths", "strings", "paths"),
    ("Timeline", "string", "timeline"),
    ("PlanPoses", "poses", "plan_poses"),
)
_SLOW_TOPICS = (
    ("Progress", "double", "progress"),
    ("StepElapsed", "double", "step_elapsed_s"),
    ("ActivePose", "pose", "active_pose"),
)


class StatusTopics:
    """Puts status fields on their topics when they change."""

    def __init__(self, instance: Any, root: str) -> None:
        self._instance: Any = instance
        for name, text in SCHEMAS:
            instance.addSchema(name, "structschema", text)
        make: dict[str, Callable[[str], Any]] = {
            "string": lambda name: instance.getStringTopic(name).publish(),
            "boolean": lambda name: instance.getBooleanTopic(name).publish(),
            "strings": lambda name: instance.getStringArrayTopic(name).publish(),
            "int": lambda name: instance.getIntegerTopic(name).publish(),
            "double": lambda name: instance.getDoubleTopic(name).publish(),
            "poses": lambda name: instance.getRawTopic(name).publish("struct:Pose2d[]"),
            "pose": lambda name: instance.getRawTopic(name).publish("struct:Pose2d"),
        }
        self._constants = [make["int"](f"{root}/Protocol"), make["string"](f"{root}/Version")]
        self._constants[0].set(PROTOCOL)
        self._constants[1].set(__version__)
        self._quick = [(make[kind](f"{root}/{topic}"), kind, name) for topic, kind, name in _TOPICS]
        self._slow = [(make[kind](f"{root}/{topic}"), kind, name) for topic, kind, name in _SLOW_TOPICS]
        self._sent: dict[str, object] = {}
        self._slow_due_us = 0

    def publish(self, status: Status, now_us: int, settings: Settings) -> None:
        """Put what changed; the fast-moving fields at most once per status period."""
        if self._put(self._quick, status):
            self._instance.flush()
        if now_us >= self._slow_due_us or now_us < self._slow_due_us - 10_000_000:
            self._slow_due_us = now_us + round(settings.status_period_s * 1e6)
            self._put(self._slow, status)

    def _put(self, rows: list[tuple[Any, str, str]], status: Status) -> bool:
        sent = self._sent
        changed = False
        for publisher, kind, name in rows:
            value = getattr(status, name)
            if name in sent and sent[name] == value:
                continue
            sent[name] = value
            changed = True
            if kind == "poses":
                publisher.set(b"".join(map(_packed, value)))
            elif kind == "pose":
                if value is not None:
                    publisher.set(_packed(value))
            else:
                publisher.set(list(value) if kind == "strings" else value)
        return changed

    def close(self) -> None:
        """Unpublish."""
        self._instance = None
        self._quick.clear()
        self._slow.clear()
        self._constants.clear()


def _packed(pose: Pose2) -> bytes:
    return struct.pack("<3d", pose.x, pose.y, pose.rotation)
