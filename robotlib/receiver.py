"""RoboRoute: plans from NetworkTables in robot code. The only module that knows ntcore.

All calls belong to the robot loop's thread; nothing raises into the loop.
"""

from __future__ import annotations

import logging
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import ntcore

from .actions import DEFAULT_TIMEOUT_S, Actions, Factory
from .control import PlanControl
from .drive import Drive, DriveSettings
from .eventlog import Event
from .extra import ExtraType
from .fitting import Robot
from .host import Host
from .inputs import FALSE, TRUE, WRONG_TYPE, Inputs
from .leaves import DriveLeaves, Leaves
from .model import FIELD_2026, Field, Limits, Pose2
from .pathfile import PathFolder, PathSource
from .runs import Run
from .settings import Settings
from .status import StartResult, Status
from .status_topics import StatusTopics
from .worker import ThreadWorker, Worker

__all__ = ["RoboRoute", "RoboRouteIO"]

MAX_PATHS = 200  # names shown to the phone
EXISTS_EVERY = 10  # loops
POSE_BYTES = 24  # three little-endian doubles: x, y, rotation
MAX_ROUTE_BYTES = POSE_BYTES * 1024  # beyond, a Route is not even unpacked
_F = TypeVar("_F", bound=Factory)
_log = logging.getLogger("robotlib")


class RoboRouteIO:
    """Reads the phone's topics, the host and the drive into `Inputs`."""

    def __init__(
        self,
        instance: ntcore.NetworkTableInstance,
        root: str,
        host: Host,
        drive: Drive | None,
        *,
        clock: Callable[[], int],
        worker: Worker,
        stick: Callable[[], float] | None = None,
    ) -> None:
        self._host = host
        self._drive = drive
        self._clock = clock
        self._worker = worker
        self._stick = stick
        # Generic: a typed subscriber would not show a value of another type, and a wrong press would vanish.
        options = ntcore.PubSubOptions(sendAll=True, keepDuplicates=True, pollStorage=64)

        def subscribe(name: str) -> ntcore.GenericSubscriber:
            return instance.getTopic(name).genericSubscribe(options)

        self._plan = subscribe(f"{root}/Plan")
        self._pose = subscribe(f"{root}/Pose")
        self._route = subscribe(f"{root}/Route")
        self._runs = [subscribe(f"{root}/{name}") for name in ("RunPlan", "RunPose", "RunRoute")]
        self._cancel = subscribe(f"{root}/CancelPlan")
        # A published bridge leaves out the leading slash, which makes another topic.
        self._beats = [subscribe(f"{root}/Heartbeat"), subscribe(f"{root}/Heartbeat".removeprefix("/"))]
        self._newest_pose: tuple[list[float], int] | None = None
        self._newest_route: tuple[list[float], int] | None = None
        self._beat_exists = [False, False]
        self._loops = 0
        self.calls: list[str] = []

    def close(self) -> None:
        """Unsubscribe."""
        del self._plan, self._pose, self._route, self._cancel
        self._runs.clear()
        self._beats.clear()

    def update(self, inputs: Inputs) -> None:
        """Fill a new `Inputs` with all that arrived since the last call."""
        self.read_host(inputs)
        self._read_plan(inputs)
        self._newest_pose = self._newest(self._pose, "struct:Pose2d", self._newest_pose)
        self._newest_route = self._newest(self._route, "struct:Pose2d[]", self._newest_route)
        if self._newest_pose is not None:
            inputs.pose_seen = True
            inputs.pose_values, inputs.pose_stamp_us = self._newest_pose
        if self._newest_route is not None:
            inputs.route_seen = True
            inputs.route_values, inputs.route_stamp_us = self._newest_route
        self._read_booleans(self._runs[0], inputs.run_plan_values, inputs.run_plan_stamps_us)
        self._read_booleans(self._runs[1], inputs.run_pose_values, inputs.run_pose_stamps_us)
        self._read_booleans(self._runs[2], inputs.run_route_values, inputs.run_route_stamps_us)
        self._read_booleans(self._cancel, inputs.cancel_values, inputs.cancel_stamps_us)
        self._loops += 1
        for topic, subscriber in enumerate(self._beats):
            values = subscriber.readQueue()
            if values or self._loops % EXISTS_EVERY == topic:  # asking costs more than all the queues
                self._beat_exists[topic] = subscriber.exists()
            for value in values:
                if value.isDouble() or value.isInteger() or value.isFloat():
                    inputs.heartbeat_topics.append(topic)
                    inputs.heartbeat_values.append(float(value.value()))
                    inputs.heartbeat_stamps_us.append(value.time())
        inputs.heartbeat_exists = list(self._beat_exists)
        inputs.jobs_done = self._worker.take_done()
        inputs.calls, self.calls = self.calls, []

    def read_host(self, inputs: Inputs) -> None:
        """Fill in the clock, the host's state, the stick and the measured pose."""
        inputs.now_us = self._clock()
        state = self._host.read()
        inputs.enabled, inputs.mode, inputs.estop = state.enabled, state.mode, state.estop
        inputs.brownout, inputs.fms, inputs.alliance = state.brownout, state.fms, state.alliance
        if self._stick is not None:
            inputs.stick = float(self._stick())
        if self._drive is not None:
            try:
                pose = self._drive.pose()
            except Exception:  # noqa: BLE001  (robot code; a pose that is not a number ends a drive step)
                pose = Pose2(math.nan, math.nan, math.nan)
            inputs.pose_x, inputs.pose_y, inputs.pose_rotation = pose.x, pose.y, pose.rotation

    def _read_plan(self, inputs: Inputs) -> None:
        values = self._plan.readQueue()
        # Asked after the queue: a topic that appears in between would bring a text and yet count as gone.
        inputs.plan_exists = self._plan.exists()
        for value in values:
            if not value.isValid():  # the first entry of a generic subscriber
                continue
            text, kind = "", "wrong-type"
            if value.isString():
                try:
                    text, kind = value.getString(), "text"
                except UnicodeDecodeError:
                    kind = "bad-encoding"
            inputs.plan_texts.append(text)
            inputs.plan_kinds.append(kind)
            inputs.plan_stamps_us.append(value.time())

    @staticmethod
    def _newest(
        subscriber: ntcore.GenericSubscriber, type_string: str, known: tuple[list[float], int] | None
    ) -> tuple[list[float], int] | None:
        """Return the newest value, with no numbers if it is not of the type; None once the topic is gone."""
        for value in subscriber.readQueue():
            if value.isValid():
                data = bytes(value.getRaw()) if value.isRaw() else b""
                fits = POSE_BYTES <= len(data) <= MAX_ROUTE_BYTES and len(data) % POSE_BYTES == 0
                if type_string == "struct:Pose2d":
                    fits = len(data) == POSE_BYTES
                if not fits or subscriber.getTopic().getTypeString() != type_string:
                    data = b""
                known = (list(struct.unpack(f"<{len(data) // 8}d", data)), value.time())
        return known if known is None or subscriber.exists() else None

    @staticmethod
    def _read_booleans(subscriber: ntcore.GenericSubscriber, values: list[int], stamps_us: list[int]) -> None:
        for value in subscriber.readQueue():
            if value.isValid():
                kind = WRONG_TYPE
                if value.isBoolean():
                    kind = TRUE if value.getBoolean() else FALSE
                values.append(kind)
                stamps_us.append(value.time())


class _SeenDrive:
    """The team's drive, with the pose that this loop's inputs hold."""

    def __init__(self, drive: Drive) -> None:
        self._drive = drive
        self.control: PlanControl | None = None

    def pose(self) -> Pose2:
        return self._drive.pose() if self.control is None else self.control.pose()

    def drive(self, vx: float, vy: float, omega: float) -> None:
        self._drive.drive(vx, vy, omega)

    def stop(self) -> None:
        self._drive.stop()


class RoboRoute:
    """Stages the phone's plans and runs them. Call `periodic` in every robot loop, in every mode."""

    def __init__(
        self,
        *,
        host: Host,
        drive: Drive | None = None,
        leaves: Leaves | None = None,
        drive_settings: DriveSettings = DriveSettings(),  # noqa: B008  (frozen)
        field: Field = FIELD_2026,
        settings: Settings = Settings(),  # noqa: B008
        limits: Limits = Limits(),  # noqa: B008
        extra_types: Mapping[str, ExtraType] | None = None,
        paths: PathSource | None = None,
        deploy_dir: str | Path | None = None,
        root: str = "/RoboRoute",
        instance: ntcore.NetworkTableInstance | None = None,
        clock: Callable[[], int] = ntcore._now,
        worker: Worker | None = None,
        stick: Callable[[], float] | None = None,
    ) -> None:
        self._worker: Worker = ThreadWorker() if worker is None else worker
        paths = paths or getattr(leaves, "paths", None)
        if paths is None:
            folder = Path(deploy_dir) if deploy_dir is not None else host.deploy_dir()
            if folder is not None and folder.is_dir():
                paths = PathFolder(folder)
                paths.navgrid()  # read here, not in the loop of the first press
        seen = _SeenDrive(drive) if drive is not None else None
        if leaves is None and seen is not None:
            leaves = DriveLeaves(seen, drive_settings, paths, field)
        use_worker = getattr(leaves, "use_worker", None)
        if use_worker is not None:
            use_worker(self._worker)
        self.actions = self._make_actions()
        robot = Robot(self.actions, leaves, paths, field, limits, extra_types)
        self.control = PlanControl(robot, settings, self._worker, clock(), self._launcher())
        if seen is not None:
            seen.control = self.control
        instance = ntcore.NetworkTableInstance.getDefault() if instance is None else instance
        used = drive if drive is not None else leaves.drive if leaves is not None else None
        self._io = RoboRouteIO(instance, root, host, used, clock=clock, worker=self._worker, stick=stick)
        self._publisher = StatusTopics(instance, f"{root}/Status")
        self._broken = ""
        self.inputs = Inputs()
        names = paths.names() if paths is not None else ()
        self.control.status.paths = names[:MAX_PATHS]

    def _make_actions(self) -> Actions:
        return Actions()

    def _launcher(self) -> Callable[[Run], str] | None:
        return None

    def action(
        self,
        action_id: int,
        name: str,
        factory: Factory,
        *,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        requires: Iterable[object] = (),
        resumable: bool = False,
        estimate_s: float | None = None,
    ) -> None:
        """Register an action; `factory` is called for every run. RegistryError for a bad or taken id."""
        self.actions.register(
            action_id,
            name,
            factory,
            timeout_s=timeout_s,
            requires=requires,
            resumable=resumable,
            estimate_s=estimate_s,
        )

    def on_action(self, action_id: int, name: str, **options: Any) -> Callable[[_F], _F]:
        """Return a decorator that registers a factory; options as in `action`."""
        return self.actions.on(action_id, name, **options)

    def periodic(self) -> None:
        """Read, decide, drive one loop, publish."""
        inputs = Inputs()
        try:
            self._io.update(inputs)
            self.inputs = inputs
            self._publisher.publish(self.control.update(inputs), inputs.now_us, self.control.settings)
        except Exception as error:  # noqa: BLE001  (nothing may raise into the robot loop; told once, run ended)
            self._contain(error)

    def start(self, source: str = "code") -> StartResult:
        """Start the staged plan from robot code; falsy with code and text if that is not possible now."""
        self._io.read_host(self.control.inputs)
        self._io.calls.append(f"start:{source}")
        return self.control.start(source)

    def cancel(self, reason: str = "code") -> None:
        """Cancel the run; the drive is stopped before this returns."""
        self._io.calls.append(f"cancel:{reason}")
        self.control.cancel(reason)

    def pause(self) -> None:
        """Pause the run."""
        self._io.calls.append("pause:")
        self.control.pause()

    def resume(self) -> None:
        """Resume a paused run."""
        self._io.calls.append("resume:")
        self.control.resume()

    @property
    def status(self) -> Status:
        """The status of the last loop, as published."""
        return self.control.status

    @property
    def running(self) -> bool:
        """True while a plan is RUNNING or PAUSED."""
        return self.control.running

    def take_events(self) -> list[Event]:
        """Remove and return the events since the last call, for logs."""
        return self.control.take_events()

    def close(self) -> None:
        """Cancel the run, wait for the worker, leave NetworkTables."""
        self.control.cancel("code")
        self._worker.close()
        self._io.close()
        self._publisher.close()

    def _contain(self, error: Exception) -> None:
        """Keep the robot program alive: end the run, say so once."""
        text = f"{type(error).__name__}: {error}"
        if text != self._broken:
            self._broken = text
            _log.exception("a loop of the plan receiver failed")
        self.control.cancel("code")
