"""The phone app that exists, as far as the bridge meets it: what it subscribes, puts and expects.

Pure: bytes in, bytes out, time as an argument (monotonic seconds). Source: the conversation of the known app.
"""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

__all__ = ["KnownApp"]

POSE_SCHEMA: Final = (
    "struct Pose2d {struct Translation2d {double x; double y;} translation; "
    "struct Rotation2d {double value;} rotation;}"
)
RESUBSCRIBE_S = 60.0
POSE_DELAY_S = 1.0  # the app asks for the pose topic one second after opening
PULSE_S = 1.0
REOPEN_S = 0.5
MAX_SAMPLES = 20_000
MAX_WRITE = 16_384


class KnownApp:
    """One running app. ``subtrees`` are subscribed beside its own; ``clock_in``/``clock_out`` are topics of
    doubles with the sender's monotonic time, from which latencies are taken. ``hello`` = an app that answers pings.
    """

    def __init__(
        self,
        now: float,
        *,
        pose_topic: str = "/robot/pose",
        subtrees: Sequence[str] = (),
        clock_in: str = "",
        clock_out: str = "",
        clock_period_s: float = 0.05,
        press_period_s: float = 5.0,
        hello: bool = False,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self.latency_s: deque[float] = deque(maxlen=MAX_SAMPLES)
        self.last_in = ""
        self.last_out = ""
        self.errors: deque[str] = deque(maxlen=20)
        self._pose_topic = pose_topic
        self._subtrees = subtrees
        self._clock_in = clock_in
        self._clock_out = clock_out
        self._clock_period_s = clock_period_s
        self._press_period_s = press_period_s
        self._hello = hello
        self._buffer = b""
        self._connected = False
        self._runs = 0
        self._out: list[bytes] = []
        self._serial = 0
        self._timers: list[tuple[float, int, Callable[[float], None]]] = []
        self._open(now)

    def on_bytes(self, chunk: bytes, now: float) -> None:
        """What a read returned."""
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        for line in lines:
            if line:
                self._on_line(line, now)

    def take_bytes(self, now: float) -> bytes:
        """What the app writes now, b"" for nothing; at most 16 384 bytes."""
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2](now)
        size, taken = 0, 0
        for line in self._out:
            if size + len(line) > MAX_WRITE:
                break
            size += len(line)
            taken += 1
        data = b"".join(self._out[:taken])
        del self._out[:taken]
        return data

    def next_due(self) -> float:
        """When ``take_bytes`` has something to give."""
        return 0.0 if self._out else self._timers[0][0]

    def reopen(self, now: float) -> None:
        """The app is closed and opened again on the same accessory."""
        self._out.clear()
        self._buffer = b""
        self._open(now)

    def _open(self, now: float) -> None:
        self._timers.clear()
        if self._hello:
            self._runs += 1
            self._send({"action": "hello", "app": "simulated", "version": "1", "nonce": str(self._runs)})
        self._subscribe(now)
        self._after(now, POSE_DELAY_S, self._subscribe_pose)
        self._after(now, POSE_DELAY_S + self._press_period_s, self._press)

    def _subscribe(self, now: float) -> None:
        self._send({"subscribe": ["/FMSInfo/IsRedAlliance"]})
        further = [*self._subtrees, *([self._clock_in] if self._clock_in else [])]
        if further:
            self._send({"subscribe": further})
        self._after(now, RESUBSCRIBE_S, self._subscribe)

    def _subscribe_pose(self, now: float) -> None:
        self._send({"subscribe": [self._pose_topic]})
        self._after(now, RESUBSCRIBE_S, self._subscribe_pose)

    def _press(self, now: float) -> None:
        pose = {"translation": {"x": 2.0, "y": 3.0}, "rotation": {"value": 0.5}}
        self._send({"action": "put", "key": "/RoboRoute/Pose", "schema": POSE_SCHEMA, "value": pose})
        self._send({"action": "put", "key": "/RoboRoute/RunPose", "value": True})
        self._after(now, PULSE_S, self._release)
        self._after(now, self._press_period_s, self._press)

    def _release(self, now: float) -> None:
        del now
        self._send({"action": "put", "key": "/RoboRoute/RunPose", "value": False})

    def _on_status(self, connected: bool, now: float) -> None:
        if connected and self._clock_out and not self._connected:
            self._after(now, self._clock_period_s, self._put_clock)
        self._connected = connected

    def _put_clock(self, now: float) -> None:
        if not self._connected:
            return
        self._send({"action": "put", "key": self._clock_out, "value": now, "type": "double"})
        self._after(now, self._clock_period_s, self._put_clock)

    def _after(self, now: float, delay_s: float, act: Callable[[float], None]) -> None:
        self._serial += 1
        heapq.heappush(self._timers, (now + delay_s, self._serial, act))

    def _send(self, message: dict[str, Any]) -> None:
        line = orjson.dumps(message)
        self.counters["tx_lines"] += 1
        self.counters["puts"] += message.get("action") == "put"
        self.last_out = line.decode()
        self._out.append(line + b"\n")

    def _on_line(self, line: bytes, now: float) -> None:
        self.counters["rx_lines"] += 1
        self.last_in = line[:500].decode(errors="replace")
        try:
            message = orjson.loads(line)
        except orjson.JSONDecodeError:
            self.counters["errors"] += 1
            self.errors.append(self.last_in)
            return
        if "key" in message:
            self.counters["values"] += 1
            self.counters["structs"] += "schema" in message
            if message["key"] == self._clock_in and isinstance(message["value"], float):
                self.latency_s.append(now - message["value"])
        elif "topics" in message:
            self.counters["topic_lists"] += 1
            self.counters["topics"] = len(message["topics"])
        elif "error" in message:
            self.counters["errors"] += 1
            self.errors.append(self.last_in)
        elif "status" in message:
            self._on_status(message["status"]["server"] == "connected", now)
        elif "ping" in message and self._hello:
            self._send({"action": "pong", "id": message["ping"]})
        elif message.get("disconnect") is True:
            self.counters["disconnects"] += 1
            self._out.clear()
            self._timers.clear()
            self._after(now, REOPEN_S, self._open)
