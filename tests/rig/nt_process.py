"""A NetworkTables server or a second client in a process of its own, driven by JSON lines.

    with NtProcess.server() as robot:
        robot.publish("/x", "double", 1.0)
        robot.wait_value("/put", 4)
        robot.kill(); robot.start()          # same port, nothing of the old state but what clients bring back

The child uses ntcore alone, nothing of aoabridge, so that it can witness against it. It prints ``ready`` when it
listens (server) or is connected (client) and ends when its standard input does.
"""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

SETTERS = {
    "boolean": "setBoolean",
    "int": "setInteger",
    "double": "setDouble",
    "float": "setFloat",
    "string": "setString",
    "json": "setString",
    "boolean[]": "setBooleanArray",
    "int[]": "setIntegerArray",
    "double[]": "setDoubleArray",
    "float[]": "setFloatArray",
    "string[]": "setStringArray",
}
DEADLINE_S = 10.0


def free_port() -> int:
    """A port that nothing listens on; NT4 port 0 would mean "disabled", not "any"."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def power_off(process: subprocess.Popen[str], drained: Callable[[], None] = lambda: None) -> None:
    """End a child the hard way, frozen or not; ``drained`` returns when its last words have been read."""
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.wait()
    drained()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def to_json(value: Any) -> Any:
    return {"b64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def from_json(value: Any) -> Any:
    return base64.b64decode(value["b64"]) if isinstance(value, dict) and "b64" in value else value


class NtProcess:
    """The parent's side. Every method waits for the child's answer."""

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments
        self.process: subprocess.Popen[str] | None = None
        self.samples: list[dict[str, Any]] = []

    @classmethod
    def server(cls, port: int | None = None) -> "NtProcess":
        return cls("server", str(port or free_port()))

    @classmethod
    def client(cls, port: int, name: str = "witness") -> "NtProcess":
        return cls("client", str(port), name)

    @property
    def port(self) -> int:
        return int(self.arguments[1])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == "ready\n", f"child said {line!r}"
        return self

    def kill(self) -> None:
        """End it the hard way, as a robot that loses power. Idempotent."""
        process, self.process = self.process, None
        if process is not None:
            power_off(process)

    def suspend(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def ask(self, command: str, **arguments: Any) -> Any:
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer
        return answer["result"]

    def publish(
        self, topic: str, type_string: str, value: Any, properties: dict[str, Any] | None = None, *, flush: bool = True
    ) -> bool:
        """Set one value (bytes allowed); False if the setter refused."""
        return self.ask(
            "publish", topic=topic, type_string=type_string, value=to_json(value), properties=properties, flush=flush
        )

    def publish_schema(self, name: str, text: str) -> bool:
        return self.publish(f"/.schema/struct:{name}", "structschema", text.encode(), {"retained": True})

    def unpublish(self, topic: str) -> None:
        self.ask("unpublish", topic=topic)

    def fill(self, prefix: str, count: int) -> None:
        """Publish ``count`` double topics ``prefix0`` ... with their number as value."""
        self.ask("fill", prefix=prefix, count=count)

    def stream(self, prefix: str, count: int, hz: float) -> None:
        """Set ``count`` topics ``hz`` times a second in the background until ``still``."""
        self.ask("stream", prefix=prefix, count=count, hz=hz)

    def still(self) -> int:
        """End the stream; returns the last value that every topic of it got."""
        return self.ask("still")

    def flood(self, topic: str, count: int) -> None:
        """Set one int topic to 0 ... count-1 without a pause."""
        self.ask("flood", topic=topic, count=count)

    def topics(self) -> dict[str, dict[str, Any]]:
        """Every topic it knows: ``{"type", "properties"}``."""
        return self.ask("topics")

    def types(self) -> dict[str, str]:
        return {name: info["type"] for name, info in self.topics().items()}

    def now_us(self) -> int:
        return self.ask("now")

    def take(self) -> list[dict[str, Any]]:
        """New values of other programs: ``{"topic", "type", "value", "time_us"}``; ``samples`` collects them all."""
        new = [{**sample, "value": from_json(sample["value"])} for sample in self.ask("take")]
        self.samples.extend(new)
        return new

    def values(self, topic: str) -> list[Any]:
        """All values seen of one topic so far, in order."""
        self.take()
        return [sample["value"] for sample in self.samples if sample["topic"] == topic]

    def wait(self, condition: Callable[[], bool], seconds: float = DEADLINE_S) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "condition not met in time"
            time.sleep(0.005)

    def wait_value(self, topic: str, value: Any, seconds: float = DEADLINE_S) -> None:
        self.wait(lambda: value in self.values(topic)[-1:], seconds)

    def wait_topic(self, topic: str, *, gone: bool = False, seconds: float = DEADLINE_S) -> None:
        self.wait(lambda: (topic in self.topics()) is not gone, seconds)


class Child:
    """The other side: one instance, one thread that collects, commands from standard input."""

    def __init__(self, role: str, port: int, name: str) -> None:
        import ntcore

        self.ntcore = ntcore
        self.instance = ntcore.NetworkTableInstance.create()
        quiet = ntcore.NetworkTableInstance.LogLevel.kLogCritical
        self.instance.configPythonLogging(min=quiet, max=quiet)
        self.role = role
        self.options = ntcore.PubSubOptions(periodic=0.004, sendAll=True, keepDuplicates=True)
        self.multi = ntcore.MultiSubscriber(self.instance, [""], self.options)
        self.poller = ntcore.NetworkTableListenerPoller(self.instance)
        self.poller.addLogger(50, 100)
        flags = ntcore.EventFlags
        self.poller.addListener(self.multi, flags.kValueRemote | flags.kTopic | flags.kImmediate)
        self.lock = threading.Lock()
        self.samples: list[dict[str, Any]] = []
        self.infos: dict[str, dict[str, Any]] = {}
        self.publishers: dict[str, Any] = {}
        self.streaming = threading.Event()
        self.stream_thread: threading.Thread | None = None
        self.stopping = False
        if role == "server":
            self.instance.startServer("", "127.0.0.1", 0, port)
            until(lambda: can_connect(port))
        else:
            self.instance.setServer("127.0.0.1", port)
            self.instance.startClient4(name)
            until(self.instance.isConnected)
        self.thread = threading.Thread(target=self.collect, daemon=True)
        self.thread.start()

    def collect(self) -> None:
        from wpiutil.sync import waitForObject

        while not self.stopping:
            waitForObject(self.poller.getHandle(), 0.25)
            for event in [] if self.stopping else self.poller.readQueue():
                with self.lock:
                    self.note(event.flags, event.data)

    def note(self, flags: int, data: Any) -> None:
        if flags & 64:
            sample = {"topic": data.topic.getName(), "value": to_json(data.value.value())}
            sample |= {"type": data.topic.getTypeString(), "time_us": data.value.server_time()}
            self.samples.append(sample)
        elif flags & 8:
            self.infos[data.name] = {"type": data.type_str, "properties": json.loads(data.properties or "{}")}
        elif flags & 16:
            self.infos.pop(data.name, None)
        elif flags & 32 and data.name in self.infos:
            self.infos[data.name]["properties"] = json.loads(data.properties or "{}")

    def setter(self, topic: str, type_string: str, properties: dict[str, Any] | None) -> Callable[[Any], bool]:
        key = f"{topic}\0{type_string}"
        if key not in self.publishers:
            for old in [old for old in self.publishers if old.startswith(f"{topic}\0")]:
                del self.publishers[old]
            publisher = self.instance.getTopic(topic).genericPublishEx(type_string, properties or {}, self.options)
            self.publishers[key] = getattr(publisher, SETTERS.get(type_string, "setRaw"))
        return self.publishers[key]

    def command_publish(
        self,
        topic: str,
        type_string: str,
        value: Any,
        properties: dict[str, Any] | None,
        flush: bool,
    ) -> bool:
        done = self.setter(topic, type_string, properties)(from_json(value))
        if flush:
            self.instance.flush()
        return done

    def command_unpublish(self, topic: str) -> None:
        for key in [key for key in self.publishers if key.startswith(f"{topic}\0")]:
            del self.publishers[key]
        self.instance.flush()

    def command_fill(self, prefix: str, count: int) -> None:
        for number in range(count):
            self.setter(f"{prefix}{number}", "double", None)(float(number))
        self.instance.flush()

    def command_flood(self, topic: str, count: int) -> None:
        setter = self.setter(topic, "int", None)
        for number in range(count):
            setter(number)
        self.instance.flush()

    def command_stream(self, prefix: str, count: int, hz: float) -> None:
        setters = [self.setter(f"{prefix}{number}", "int", None) for number in range(count)]
        self.streaming.set()
        self.last = -1

        def run() -> None:
            began = time.monotonic()
            while self.streaming.is_set():
                self.last += 1
                for setter in setters:
                    setter(self.last)
                self.instance.flushLocal()
                time.sleep(max(0.0, began + (self.last + 1) / hz - time.monotonic()))

        self.stream_thread = threading.Thread(target=run, daemon=True)
        self.stream_thread.start()

    def command_still(self) -> int:
        self.streaming.clear()
        if self.stream_thread is not None:
            self.stream_thread.join()
        self.instance.flush()
        return self.last

    def command_topics(self) -> dict[str, Any]:
        with self.lock:
            return dict(self.infos)

    def command_take(self) -> list[dict[str, Any]]:
        with self.lock:
            samples, self.samples = self.samples, []
            return samples

    def command_now(self) -> int:
        return self.ntcore._now() + (self.instance.getServerTimeOffset() or 0)

    def serve(self) -> None:
        print("ready", flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = {"result": getattr(self, "command_" + request.pop("command"))(**request)}
            except Exception as error:  # noqa: BLE001  # the parent's test must fail, not the child hang
                answer = {"error": repr(error)}
            print(json.dumps(answer), flush=True)

    def close(self) -> None:
        self.streaming.clear()
        self.publishers.clear()
        self.stopping = True
        self.poller.close()
        self.thread.join()
        self.multi.close()
        if self.role == "server":
            self.instance.stopServer()
        else:
            self.instance.stopClient()
        self.ntcore.NetworkTableInstance.destroy(self.instance)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            os._exit(1)
        time.sleep(0.002)


def can_connect(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def main(role: str, port: str, name: str = "robot") -> None:
    child = Child(role, int(port), name)
    child.serve()
    child.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
