"""The real Relay, NtClient and PipeHost on an event loop in a thread, with phones that are pipes in memory.

with RelayThread(robot.address) as bridge:
    phone = bridge.phone()
    phone.say({"subscribe": ["/robot/pose"]})
    phone.wait(lambda: phone.values("/robot/pose"))
"""

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from aoabridge.adapters.memory_pipe import MemoryPipe
from aoabridge.adapters.nt import NtClient, NtSettings, NtTarget
from aoabridge.bridge.core import BridgeCore, CoreSettings
from aoabridge.daemon.pipes import PipeHost
from aoabridge.daemon.relay import Relay

DEADLINE_S = 15.0


class RelayThread:
    """One bridge; everything of it lives on the loop's thread, ``ask`` looks at it from outside."""

    def __init__(self, address: str, settings: CoreSettings | None = None) -> None:
        self._address = address
        self._settings = settings or CoreSettings()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._failure: list[dict[str, Any]] = []
        self.phones: list[Phone] = []

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(DEADLINE_S)
        until(lambda: self.ask(lambda: self.core.settled), "the bridge did not settle")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        assert self._failure == []

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(lambda _, context: self._failure.append(context))
        self._end = asyncio.Event()
        self.core = BridgeCore(self._settings)
        settings = NtSettings("aoabridge-test", NtTarget(servers=(self._address,)))
        self.nt = NtClient(settings, wake=self._wake)
        self.relay = Relay(self.core, self.nt)
        self._pipes = PipeHost(self.relay, itertools.count(1).__next__)
        self.nt.open()
        self.relay.turn_soon()
        self._ready.set()
        await self._end.wait()
        self.core.begin_stop(time.monotonic())
        self.relay.turn_now()
        await self._pipes.stop()
        self.relay.close()
        self.nt.close()

    def _wake(self) -> None:
        self.relay.wake()

    def ask(self, question: Callable[[], Any]) -> Any:
        """The answer of a function that runs on the loop's thread."""

        async def answer() -> Any:
            return question()

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result(DEADLINE_S)

    def phone(self) -> "Phone":
        """Plug one more phone in."""
        phone = Phone()
        self.ask(lambda: self._pipes.open(phone.pipe, f"phone{len(self.phones)}"))
        self.phones.append(phone)
        return phone


class Phone:
    """An app that reads at once; ``lines`` are all lines so far, ``raw`` their bytes."""

    def __init__(self) -> None:
        self.pipe = MemoryPipe(lambda: None)
        self.raw: list[bytes] = []
        self._rest = b""

    def say(self, *messages: dict[str, Any] | str) -> None:
        for message in messages:
            text = message if isinstance(message, str) else json.dumps(message)
            self.pipe.send(text.encode() + b"\n")

    def read(self) -> list[bytes]:
        *lines, self._rest = (self._rest + self.pipe.receive()).split(b"\n")
        self.raw += [line for line in lines if line]
        return self.raw

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.read()]

    def values(self, key: str) -> list[Any]:
        return [line["value"] for line in self.lines if line.get("key") == key]

    def errors(self) -> list[str]:
        return [line["error"]["code"] for line in self.lines if "error" in line]

    def wait(self, condition: Callable[[], Any], seconds: float = DEADLINE_S) -> None:
        until(condition, f"last lines: {self.raw[-3:]}", seconds)

    def wait_value(self, key: str, value: Any) -> None:
        self.wait(lambda: value in self.values(key)[-1:])

    def answer(self, message: str) -> tuple[str, Any]:
        """Put something with an id; ``("ack", id)`` or ``("error", code)``."""
        ident = f"n{len(self.raw)}-{time.monotonic_ns()}"
        self.say(message.removesuffix("}") + f',"id":"{ident}"}}')
        found: list[tuple[str, Any]] = []

        def answered() -> bool:
            for line in self.lines:
                if line.get("ack") == ident:
                    found.append(("ack", ident))
                elif line.get("error", {}).get("id") == ident:
                    found.append(("error", line["error"]["code"]))
            return bool(found)

        self.wait(answered)
        return found[0]

    def unplug(self) -> None:
        self.pipe.hang_up()


def until(condition: Callable[[], Any], complaint: str, seconds: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.005)
