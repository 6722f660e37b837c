"""The floor: the simplest relay that can be written with ntcore and a blocking pipe, to which the bridge is compared.

No policy, no limits, no recovery, no cache, one phone: two threads that turn values into lines and lines into sets.
"""

import struct
import threading
import time
from typing import Final

import ntcore
import orjson
from wpiutil.sync import waitForObject

from aoabridge.adapters.usb_pump import Pipe

READ_MS: Final = 100
WAIT_S: Final = 0.1
POSE: Final = struct.Struct("<3d")


class FloorRelay:
    """Relays everything from ``open`` to ``close``."""

    def __init__(self, pipe: Pipe, port: int) -> None:
        self._pipe = pipe
        self._port = port
        self._ended = False

    def open(self) -> None:
        instance = self._instance = ntcore.NetworkTableInstance.create()
        self._poller = ntcore.NetworkTableListenerPoller(instance)
        options = ntcore.PubSubOptions(periodic=0.01, sendAll=True, keepDuplicates=True)
        self._subscriber = ntcore.MultiSubscriber(instance, [""], options)
        flags = ntcore.EventFlags
        self._poller.addListener(self._subscriber, flags.kValueRemote | flags.kImmediate)
        instance.setServer("127.0.0.1", self._port)
        instance.startClient4("floor")
        while not instance.isConnected():
            time.sleep(0.01)
        self._threads = [threading.Thread(target=self._down), threading.Thread(target=self._up)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._ended = True
        for thread in self._threads:
            thread.join()
        self._poller.close()
        self._subscriber.close()
        self._instance.stopClient()
        ntcore.NetworkTableInstance.destroy(self._instance)

    def _down(self) -> None:
        while not self._ended:
            waitForObject(self._poller.getHandle(), WAIT_S)
            lines = []
            for event in self._poller.readQueue():
                data = event.data
                wrapped = data.value
                value = wrapped.value()
                if isinstance(value, bytes):
                    value = list(POSE.unpack(value)) if len(value) == POSE.size else []
                line = {"key": data.topic.getName(), "time": wrapped.server_time() / 1e6, "value": value}
                lines.append(orjson.dumps(line))
            if lines:
                self._pipe.write(b"\n".join(lines) + b"\n", 1000)

    def _up(self) -> None:
        publishers: dict[str, ntcore.DoublePublisher] = {}
        while not self._ended:
            for line in (self._pipe.read(READ_MS) or b"").splitlines():
                message = orjson.loads(line)
                if message.get("action") != "put":
                    continue
                key = message["key"]
                if key not in publishers:
                    publishers[key] = self._instance.getDoubleTopic(key).publish(ntcore.PubSubOptions(sendAll=True))
                publishers[key].set(message["value"])
                self._instance.flush()
        publishers.clear()
