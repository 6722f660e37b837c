"""A robot in a process of its own: an NT4 server that publishes numbered values and keeps what phones put.

The class is the parent's side; run as a program it is the child, which uses ntcore alone.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

__all__ = ["Robot"]

TESTS = Path(__file__).resolve().parent.parent
ANSWER_S = 20


class Robot:
    """Drives the child. `origin` and `speed` map monotonic time to the rig's seconds."""

    def __init__(self, origin=0.0, speed=1.0):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            sys.executable,
            __file__,
            str(self.port),
            repr(origin),
            repr(speed),
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TESTS)
        self._lock = threading.Lock()
        if not self._process.stdout.readline():
            raise RuntimeError("the robot process did not start")

    def ask(self, name, **arguments):
        """One command; returns the child's answer."""
        with self._lock:
            self._process.stdin.write(json.dumps([name, arguments]) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def stall(self, seconds):
        """The whole robot stands still for a while."""
        os.kill(self._process.pid, signal.SIGSTOP)
        timer = threading.Timer(seconds, lambda: os.kill(self._process.pid, signal.SIGCONT))
        timer.daemon = True
        timer.start()

    def close(self):
        os.kill(self._process.pid, signal.SIGCONT)
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class _Server:
    """The child's server."""

    def __init__(self, port, origin, speed):
        import ntcore

        self._ntcore = ntcore
        self._origin, self._speed = origin, speed
        self._instance = ntcore.NetworkTableInstance.create()
        self._poller = ntcore.NetworkTableListenerPoller(self._instance)
        options = ntcore.PubSubOptions(periodic=0.005, sendAll=True, keepDuplicates=True)
        self._subscriber = ntcore.MultiSubscriber(self._instance, [""], options)
        self._poller.addListener(self._subscriber, ntcore.EventFlags.kValueRemote)
        self._publishers = {}
        self._sequence = 0
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self.puts = {}
        self.published = {}
        self._instance.startServer("", "127.0.0.1", 0, port)
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        self._loops = []

    def now(self):
        return self._origin + (time.monotonic() - self._origin) * self._speed

    def _watch(self):
        while not self._stopping.wait(0.002):
            for event in self._poller.readQueue():
                topic = event.data.topic.getName()
                self.puts.setdefault(topic, []).append((self.now(), event.data.value.value()))

    def _publish(self, topic, length):
        from fakes.lines import bench_value

        with self._lock:
            if topic not in self._publishers:
                options = self._ntcore.PubSubOptions(periodic=0.005, sendAll=True, keepDuplicates=True)
                self._publishers[topic] = self._instance.getStringTopic(topic).publish(options)
            self._sequence += 1
            now = self.now()
            stamp = self._ntcore._now()
            if callable(length):
                length = length(stamp)
            self._publishers[topic].set(bench_value(self._sequence, now, length), stamp)
            self.published.setdefault(topic, []).append((self._sequence, now))

    def line(self, topic, length):
        """One value whose line to the phone has `length` bytes with its LF."""

        def value_length(stamp):
            bare = json.dumps({"key": topic, "time": stamp / 1e6, "value": ""}, separators=(",", ":"))
            return length - len(bare) - 1

        self._publish(topic, value_length)
        self._instance.flush()

    def publish(self, topics, rate_hz, value_bytes, seconds):
        """`topics` topics at `rate_hz` each, in the background."""

        def run():
            step = 1 / (rate_hz * self._speed)
            begin = time.monotonic()
            end, due = begin + seconds / self._speed, begin
            while due < end:
                if self._stopping.wait(max(0.0, due - time.monotonic())):
                    return
                for index in range(topics):
                    self._publish(f"/bench/{index}", value_bytes)
                self._instance.flush()
                due = max(due + step, time.monotonic() - 0.1)

        thread = threading.Thread(target=run)
        thread.start()
        self._loops.append(thread)

    def report(self):
        with self._lock:
            return {"puts": self.puts, "published": self.published}

    def close(self):
        self._stopping.set()
        for thread in [self._watcher, *self._loops]:
            thread.join()
        self._poller.close()
        self._subscriber.close()
        for publisher in self._publishers.values():
            publisher.close()
        self._instance.stopServer()
        self._ntcore.NetworkTableInstance.destroy(self._instance)


def main():
    sys.path.insert(0, str(TESTS))
    server = _Server(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
    print("ready", flush=True)
    for request in sys.stdin:
        name, arguments = json.loads(request)
        print(json.dumps(getattr(server, name)(**arguments)), flush=True)
    server.close()


if __name__ == "__main__":
    main()
