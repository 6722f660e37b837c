"""PhoneHost, attach threads, pumps and adapters over the emulated bus: real threads, a fast clock."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from aoabridge.adapters.usb import UsbHost, UsbPipe
from aoabridge.adapters.usb_pump import Accepted, Chunk, PumpEvent
from aoabridge.daemon.phones import LinkStart, PhoneHost
from aoabridge.errors import UsbError
from aoabridge.phone.actions import PortState
from aoabridge.phone.aoa import Identity
from aoabridge.phone.ports import DeviceRules
from aoabridge.values import LinkId
from contract.hostconfig import usb_device
from fakes.bus import FakeBus

DEADLINE_S = 20.0


class Sink:
    """A bridge that sends a topic list on link up and a farewell line at the end."""

    def __init__(self) -> None:
        self.host: PhoneHost
        self.starts: list[LinkStart] = []
        self.downs: list[str] = []
        self.received = b""
        self.accepted = 0
        self.pending: dict[LinkId, bytes] = {}
        self.farewells: set[LinkId] = set()
        self.thread_ids: set[int] = set()

    def link_up(self, link: LinkId, start: LinkStart) -> None:
        self.thread_ids.add(threading.get_ident())
        self.starts.append(start)
        # The known app says something when it opens, so an adopted one is asked to open again.
        self.pending[link] = b'\n{"disconnect":true}\n' if start.adopted else b'\n{"topics":["/a"]}\n'
        asyncio.get_running_loop().call_soon(self.push, link)

    def push(self, link: LinkId) -> None:
        data = self.pending.get(link)
        if data and self.host.offer(link, data):
            self.pending[link] = b""

    def link_events(self, link: LinkId, events: Sequence[PumpEvent]) -> None:
        for event in events:
            if isinstance(event, Chunk):
                self.received += event.data
            elif isinstance(event, Accepted):
                self.accepted += event.count
                if event.count == 0:
                    self.pending[link] = b"\n"
        self.push(link)
        if self.accepted and b"\n" in self.received:
            self.host.on_link_status(link, live=True)

    def link_farewell(self, link: LinkId) -> bytes:
        if link in self.farewells:
            return b""
        self.farewells.add(link)
        return b'{"disconnect":true}\n'

    def link_down(self, link: LinkId, reason: str) -> None:
        self.downs.append(reason)


class Rig:
    def __init__(self, phones: list[dict[str, Any]], inject: Sequence[Any], rules: DeviceRules, speed: float) -> None:
        self.bus = FakeBus(phones, inject, speed)
        self.sink = Sink()
        self.changes = asyncio.Event()
        self.usb = UsbHost(self.bus.backend)
        self.host = self.sink.host = PhoneHost(
            self.sink,
            rules,
            Identity(),
            usb=self.usb,
            scan=lambda: tuple(usb_device(d) for d in self.bus.scan()),
            open_watcher=lambda: None,
            on_change=self.changes.set,
        )
        loop = asyncio.get_running_loop()
        self.bus.listeners.append(lambda: loop.call_soon_threadsafe(self.host.request_scan))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                self.changes.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.changes.wait(), 0.02)

    def states(self) -> list[PortState]:
        return [view.state for view in self.host.views()]

    def metric(self, name: str, phone: str = "p1") -> Any:
        return self.bus.metrics()[phone][name]


@contextlib.asynccontextmanager
async def running(
    phones: list[dict[str, Any]],
    *,
    inject: Sequence[Any] = (),
    rules: DeviceRules = DeviceRules(),  # noqa: B008 (frozen)
    speed: float = 1.0,
) -> AsyncIterator[Rig]:
    rig = Rig(phones, inject, rules, speed)
    before = threading.active_count()
    rig.host.start()
    try:
        yield rig
    finally:
        hanging = await rig.host.stop()
        rig.bus.close()
    assert hanging == []
    assert threading.active_count() <= before


def run(coroutine: Any) -> None:
    asyncio.run(coroutine)


def test_a_native_phone_is_switched_linked_and_told_goodbye() -> None:
    async def body() -> None:
        async with running([{"app": "known"}]) as rig:
            rig.bus.do("plug")
            await rig.until(lambda: rig.states() == [PortState.LIVE])
            assert rig.metric("start") == 1
            assert rig.metric("string_indices") == [0, 1, 2, 3, 4, 5]
            assert not rig.sink.starts[0].adopted
            loop_thread = threading.get_ident()
        assert rig.sink.downs == ["the bridge stops"]
        assert len(rig.sink.farewells) == 1
        assert rig.metric("calls_after_close") == 0
        assert rig.bus.calls_by_thread.get(loop_thread, 0) == 0
        assert rig.metric("reset") == 0
        assert rig.metric("set_configuration") == 0

    run(body())


def test_an_adopted_phone_gets_no_request() -> None:
    async def body() -> None:
        async with running([{"start_as": "accessory"}]) as rig:
            rig.bus.do("plug")
            await rig.until(lambda: bool(rig.sink.starts))
            assert rig.sink.starts[0].adopted
            assert rig.metric("vendor_requests") == 0

    run(body())


def test_unplug_ends_the_link_once_and_replug_makes_a_new_one() -> None:
    async def body() -> None:
        async with running([{}]) as rig:
            rig.bus.do("plug")
            await rig.until(lambda: rig.states() == [PortState.LIVE])
            rig.bus.do("unplug")
            await rig.until(lambda: rig.states() == [PortState.ABSENT])
            assert len(rig.sink.downs) == 1
            assert [code for code, _, _ in rig.host.issues()] == ["phone-lost"]
            await asyncio.sleep(3.1)  # a hand's pause is what the rule is about
            rig.bus.do("plug")
            await rig.until(lambda: rig.states() == [PortState.LIVE])
            assert rig.metric("start") == 2
            assert rig.metric("calls_after_no_device") <= 2

    run(body())


def test_a_loop_that_was_busy_at_the_unplug_takes_a_hand_for_a_hand() -> None:
    async def body() -> None:
        async with running([{"app": "known"}]) as rig:
            rig.bus.do("plug")
            await rig.until(lambda: rig.states() == [PortState.LIVE])
            unplugged = time.monotonic()
            rig.bus.do("unplug")
            time.sleep(0.6)  # the loop stands still, the threads of the link do not
            await rig.until(lambda: rig.states() == [PortState.ABSENT])
            await asyncio.sleep(unplugged + 3.1 - time.monotonic())
            rig.bus.do("plug")
            await rig.until(lambda: rig.states() in ([PortState.LIVE], [PortState.COOLDOWN]))
            assert rig.states() == [PortState.LIVE]

    run(body())


def test_a_permanent_access_error_is_told_once(caplog: Any) -> None:
    async def body() -> None:
        async with running([{}], inject=[{"op": "open", "error": "ACCESS", "times": "always"}]) as rig:
            rig.bus.do("plug")
            await rig.until(lambda: rig.states() == [PortState.BLOCKED])
            assert [code for code, _, _ in rig.host.issues()] == ["usb-permission"]

    run(body())
    assert [r.levelname for r in caplog.records if r.levelname == "ERROR"] == ["ERROR"]


def test_a_halt_is_cleared_by_the_thread_of_its_endpoint() -> None:
    async def body() -> None:
        async with running([{"start_as": "accessory", "halt": {"endpoint": "in", "times": 1}}]) as rig:
            rig.bus.do("plug")
            await rig.until(lambda: rig.metric("clear_halt") == 1)
            assert rig.sink.downs == []

    run(body())


def test_endpoints_that_need_a_cleared_halt_come_alive() -> None:
    async def body() -> None:
        async with running([{"start_as": "accessory", "out_dead_until": "clear_halt"}]) as rig:
            rig.bus.do("plug")
            await rig.until(lambda: rig.states() == [PortState.LIVE])
            assert rig.metric("reset") == 0
            assert len(rig.sink.starts) == 1

    run(body())


def test_a_reopened_link_is_the_same_link() -> None:
    async def body() -> None:
        async with running([{"start_as": "accessory", "app": "closed"}]) as rig:
            rig.bus.do("plug")
            await rig.until(lambda: rig.metric("claims") == 2)
            await rig.until(lambda: rig.host.link_of(1) is not None and rig.states() == [PortState.LINKED])
            assert len(rig.sink.starts) == 1
            assert rig.sink.downs == []

    run(body())


def test_two_equal_interfaces_without_strings_are_tried_in_turn() -> None:
    phone = {"start_as": "accessory", "interfaces": ["control", "accessory"], "interface_strings": False}

    async def body() -> None:
        async with running([phone]) as rig:
            rig.bus.do("plug")
            await rig.until(lambda: rig.states() == [PortState.LIVE])
            assert len(rig.sink.starts) == 2
            assert all(start.adopted for start in rig.sink.starts)

    run(body())


def test_four_dead_phones_do_not_delay_a_fifth_beyond_their_timeouts() -> None:
    dead = [{"name": f"d{i}", "at": f"1-{i}", "ep0_dead_ms": 60_000} for i in range(1, 4)]

    async def body() -> None:
        async with running([*dead, {"name": "p1", "at": "1-7"}], rules=DeviceRules(max=8)) as rig:
            rig.bus.do("plug", "*")
            await rig.until(lambda: PortState.LIVE in rig.states())

    run(body())


class HangingPipe(UsbPipe):
    """A pipe whose read never returns."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.closed = False
        self.candidates = 1
        self.packet_size = 512

    def read(self, timeout_ms: int) -> bytes | None:
        self.release.wait()
        return None

    def write(self, data: bytes, timeout_ms: int) -> int:
        return len(data)

    def close(self) -> None:
        self.closed = True


def test_a_thread_that_hangs_keeps_its_handle_open_and_ends_the_process() -> None:
    async def body() -> None:
        pipe = HangingPipe()
        fatal: list[str] = []
        sink = Sink()
        bus = FakeBus([{"start_as": "accessory"}])
        usb = UsbHost(bus.backend)
        usb.open = lambda device, turn=0: pipe  # type: ignore[method-assign]
        host = sink.host = PhoneHost(
            sink,
            DeviceRules(),
            Identity(),
            usb=usb,
            scan=lambda: tuple(usb_device(d) for d in bus.scan()),
            open_watcher=lambda: None,
            fatal=fatal.append,
        )
        bus.do("plug")
        host.start()
        async with asyncio.timeout(DEADLINE_S):
            while not sink.starts:
                await asyncio.sleep(0.01)
        hanging = await host.stop()
        assert hanging == ["Phone-p1-" + sink.starts[0].serial[-4:]]
        assert len(fatal) == 1
        assert not pipe.closed
        assert sink.downs == ["the bridge stops"]
        pipe.release.set()
        bus.close()

    run(body())


def test_no_library_is_told_and_costs_nothing_else(caplog: Any) -> None:
    def refuse() -> None:
        raise UsbError("no libusb found", errno=None, kind="NO_BACKEND", step="start", port="")

    async def body() -> None:
        usb = UsbHost()
        usb.prepare = refuse  # type: ignore[method-assign]
        host = PhoneHost(Sink(), DeviceRules(), Identity(), usb=usb, scan=lambda: (), open_watcher=lambda: None)
        host.start()
        async with asyncio.timeout(DEADLINE_S):
            while not caplog.records:
                await asyncio.sleep(0.01)
        assert await host.stop() == []

    run(body())
    assert [record.getMessage() for record in caplog.records] == ["no USB: no libusb found"]
