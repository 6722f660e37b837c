"""The in-process phone of the benchmarks: a pipe with a price per transfer that keeps what came and when."""

import queue
import time
from typing import Any, Final

import msgspec
import orjson

from aoabridge.errors import UsbError

PACKET_BYTES: Final = 512
BLOCKED_POLL_S: Final = 0.01


class Arrival(msgspec.Struct, frozen=True):
    """One value at the phone: when the relay submitted its transfer, and when the phone had it (monotonic seconds)."""

    key: str
    clock: float
    submitted: float
    arrived: float


class BenchPipe:
    """A pipe as a LinkPump wants it; ``cost_s`` is how long one transfer occupies the bus.

    Lines are looked at after the measurement only, so that the phone costs the process next to nothing.
    ``keep`` False drops what comes (for runs whose memory is measured), but the newest transfers.
    """

    def __init__(self, cost_s: float = 0.0, *, keep: bool = True) -> None:
        self.packet_size = PACKET_BYTES
        self.cost_s = cost_s
        self.reading = True
        self.keep = keep
        self.transfers: list[tuple[float, float, bytes]] = []
        self.read_at: list[float] = []
        self._to_host: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._gone = False

    def read(self, timeout_ms: int) -> bytes | None:
        """The next bytes of the app."""
        try:
            data = self._to_host.get(timeout=timeout_ms / 1000)
        except queue.Empty:
            self._require_device()
            return None
        self._require_device()
        self.read_at.append(time.monotonic())
        return data

    def write(self, data: bytes, timeout_ms: int) -> int:
        """Take a transfer, or nothing in time while the app does not read."""
        submitted = time.monotonic()
        while not self.reading:
            if time.monotonic() - submitted > timeout_ms / 1000:
                return 0
            time.sleep(BLOCKED_POLL_S)
        self._require_device()
        if self.cost_s:
            time.sleep(self.cost_s)
        if not self.keep and len(self.transfers) > 200:
            del self.transfers[:100]
        self.transfers.append((submitted, time.monotonic(), data))
        return len(data)

    def clear_halt_in(self) -> None:
        """Nothing halts."""

    def clear_halt_out(self) -> None:
        """Nothing halts."""

    def close(self) -> None:
        """The host is done."""
        self.hang_up()

    def hang_up(self) -> None:
        """Unplugged."""
        self._gone = True
        self._to_host.put(b"")

    def say(self, **message: Any) -> None:
        """The app writes one line."""
        self._to_host.put(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))

    def clear(self) -> None:
        """Forget what came so far."""
        self.transfers = []

    def arrivals(self) -> list[Arrival]:
        """Every value that came, with the robot's clock in it."""
        found = []
        for submitted, arrived, line in self._lines():
            if not line.startswith(b'{"key"'):
                continue
            message = orjson.loads(line)
            clock = clock_of(message["value"])
            if clock is not None:
                found.append(Arrival(message["key"], clock, submitted, arrived))
        return found

    def _lines(self) -> list[tuple[float, float, bytes]]:
        lines, held = [], b""
        for submitted, arrived, data in list(self.transfers):
            *complete, held = (held + data).split(b"\n")
            lines += [(submitted, arrived, line) for line in complete if line]
        return lines

    def _require_device(self) -> None:
        if self._gone:
            raise UsbError("the bench phone is gone", errno=19, kind="NO_DEVICE", step="read", port="bench")


def clock_of(value: Any) -> float | None:
    """The robot's clock in a value of a line."""
    if isinstance(value, float):
        return value
    if isinstance(value, dict) and "translation" in value:
        x: float = value["translation"]["x"]
        return x
    if isinstance(value, list) and value:
        first: float = value[0]
        return first
    return None
