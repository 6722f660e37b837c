"""The robot of the benchmarks: a NetworkTables server in a process of its own, with ntcore alone.

Every double it sets is its monotonic clock, every Pose2d has that clock as its x: on one machine the age of a value is
the reader's clock less the value. Puts of doubles are taken for such clocks too and their ages kept.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

PUT_PREFIX: Final = "/put/"
POSE_SCHEMAS: Final = {
    "Translation2d": "double x;double y",
    "Rotation2d": "double value",
    "Pose2d": "Translation2d translation;Rotation2d rotation",
}
START_S: Final = 20.0
POSE: Final = struct.Struct("<3d")


class Robot:
    """The parent's side; every method waits for the child's answer."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.port = int(self._read())

    def ask(self, command: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._read())

    def publish(self, topics: int, prefix: str = "/bench/", poses: float = 0.25) -> None:
        """Publish that many topics, a share of them Pose2d, each with a first value."""
        self.ask("publish", topics=topics, prefix=prefix, poses=poses)

    def stream(self, rate: float, round_s: float = 0.02, flush: str = "flush") -> None:
        """Set ``rate`` values a second in rotation, in rounds; ``flush``: "flush", "local" or "none" after each."""
        self.ask("stream", rate=rate, round_s=round_s, flush=flush)

    def still(self) -> dict[str, Any]:
        """End the stream: how many values were set and the last clock of every topic."""
        answer: dict[str, Any] = self.ask("still")
        return answer

    def put_ages_ms(self) -> list[float]:
        """The ages of all puts since the last call, in order of arrival."""
        ages: list[float] = self.ask("ages")
        return ages

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the robot process ended")
        return line


@contextmanager
def robot() -> Iterator[Robot]:
    """A running robot."""
    running = Robot()
    try:
        yield running
    finally:
        running.close()


class Child:
    """The other side."""

    def __init__(self) -> None:
        import ntcore  # noqa: PLC0415  # the parent measures a process that may not have it

        self.ntcore = ntcore
        self.instance = ntcore.NetworkTableInstance.create()
        self.options = ntcore.PubSubOptions(sendAll=True, keepDuplicates=True)
        self.port = free_port()
        self.instance.startServer("", "127.0.0.1", 0, self.port)
        wait_for(self.port)
        self.topics: list[tuple[str, bool, Any]] = []
        self.schemas: list[Any] = []
        self.last: dict[str, float] = {}
        self.ages_ms: list[float] = []
        self.streaming = threading.Event()
        self.thread: threading.Thread | None = None
        self.count = 0
        self.seconds = 0.0
        self._listen()

    def _listen(self) -> None:
        options = self.ntcore.PubSubOptions(periodic=0.004, sendAll=True, keepDuplicates=True)
        self.subscriber = self.ntcore.MultiSubscriber(self.instance, [PUT_PREFIX], options)
        self.poller = self.ntcore.NetworkTableListenerPoller(self.instance)
        self.poller.addListener(self.subscriber, self.ntcore.EventFlags.kValueRemote)
        self.closing = False
        self.listener = threading.Thread(target=self._collect, daemon=True)
        self.listener.start()

    def _collect(self) -> None:
        from wpiutil.sync import waitForObject  # noqa: PLC0415

        while not self.closing:
            waitForObject(self.poller.getHandle(), 0.25)
            now = time.monotonic()
            for event in [] if self.closing else self.poller.readQueue():
                self.ages_ms.append((now - event.data.value.value()) * 1e3)

    def command_publish(self, topics: int, prefix: str, poses: float) -> None:
        for name, text in POSE_SCHEMAS.items():
            topic = self.instance.getRawTopic(f"/.schema/struct:{name}")
            publisher = topic.publishEx("structschema", {"retained": True}, self.options)
            publisher.set(text.encode())
            self.schemas.append(publisher)
        for number in range(topics):
            name = f"{prefix}{number}"
            is_pose = int((number + 1) * poses) > int(number * poses)
            topic = self.instance.getTopic(name)
            if is_pose:
                setter = topic.genericPublish("struct:Pose2d", self.options).setRaw
            else:
                setter = topic.genericPublish("double", self.options).setDouble
            self.topics.append((name, is_pose, setter))
            self.set(self.topics[-1])
        self.instance.flushLocal()
        self.instance.flush()

    def set(self, topic: tuple[str, bool, Any]) -> None:
        name, is_pose, setter = topic
        now = time.monotonic()
        setter(POSE.pack(now, 0.5, 0.25) if is_pose else now)
        self.last[name] = now

    def command_stream(self, rate: float, round_s: float, flush: str) -> None:
        self.count, self.seconds = 0, 0.0
        self.streaming.set()
        self.thread = threading.Thread(target=self._stream, args=(rate, round_s, flush))
        self.thread.start()

    def _stream(self, rate: float, round_s: float, flush: str) -> None:
        topics, at, per_round, due = self.topics, 0, rate * round_s, 0.0
        began = time.monotonic()
        rounds = 0
        while self.streaming.is_set():
            due += per_round
            for _ in range(int(due)):
                self.set(topics[at])
                at = (at + 1) % len(topics)
            self.count += int(due)
            due -= int(due)
            if flush != "none":
                self.instance.flushLocal()
            if flush == "flush":
                self.instance.flush()
            rounds += 1
            time.sleep(max(0.0, began + rounds * round_s - time.monotonic()))
        self.seconds = time.monotonic() - began

    def command_still(self) -> dict[str, Any]:
        self.streaming.clear()
        if self.thread is not None:
            self.thread.join()
            self.thread = None
        self.instance.flushLocal()
        self.instance.flush()
        return {"count": self.count, "seconds": self.seconds, "last": self.last}

    def command_ages(self) -> list[float]:
        ages, self.ages_ms = self.ages_ms, []
        return ages

    def serve(self) -> None:
        print(self.port, flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            print(json.dumps(getattr(self, "command_" + request.pop("command"))(**request)), flush=True)

    def close(self) -> None:
        self.streaming.clear()
        if self.thread is not None:
            self.thread.join()
        self.topics.clear()
        self.schemas.clear()
        self.closing = True
        self.poller.close()
        self.listener.join()
        self.subscriber.close()
        self.instance.stopServer()
        self.ntcore.NetworkTableInstance.destroy(self.instance)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Until somebody listens there; the process ends if nobody does."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                os._exit(1)
            time.sleep(0.005)
        else:
            return


def main() -> None:
    child = Child()
    child.serve()
    child.close()


if __name__ == "__main__":
    main()
