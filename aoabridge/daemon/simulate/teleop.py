"""``simulate teleop``: remotely driven vehicles and their cockpit, on real sockets."""

import argparse
import asyncio
import sys
import time
from functools import partial
from typing import Any

from aoabridge.adapters.udp import Address, DatagramSocket
from aoabridge.daemon.simulate import Show, conclude, every_second
from aoabridge.daemon.simulate.turns import Turns, address_of, open_near, own_host
from aoabridge.simulators.teleop import CockpitModel, VehicleModel, parse_keys, parse_teleop_faults

__all__ = ["parse_vehicles", "run"]

UPLINK_PORT = 10010
VEHICLE_PORT = 9110  # of the first vehicle; sibling programs use one port per vehicle
_US = 1_000_000


def parse_vehicles(text: str) -> tuple[int, ...]:
    """``00A,00B`` -> vehicle ids; ValueError."""
    ids = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        try:
            ids.append(int(item, 16))
        except ValueError:
            raise ValueError(f"{item!r} is no vehicle id in hex") from None
        if not 0 < ids[-1] < 0x8000:
            raise ValueError(f"vehicle {item} is not in 1..7FFF")
    if not ids or len(set(ids)) != len(ids):
        raise ValueError("name each vehicle once, at least one")
    return tuple(ids)


async def run(args: argparse.Namespace, show: Show, stopped: asyncio.Event) -> bool:
    """Drive until stopped; True, as reports ask for no answer, unless the cockpit heard none of its vehicles."""
    bench = _Bench(args)
    try:
        bench.open()
        await every_second(stopped, lambda: show(bench.figures("tick")))
    finally:
        bench.close()
    summary = bench.figures("summary")
    return conclude(show, summary, args.role != "both" or bool(summary["reports"]))


class _Bench:
    """Each vehicle has a socket of its own; the cockpit has one for all it says and one for the reports."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._began = time.monotonic()
        now_us = _us(self._began)
        ids = parse_vehicles(args.vehicles)
        self._target = address_of(args.to, ("127.0.0.1", UPLINK_PORT))
        self._ports = (args.ctrl_port, args.trigger_port)
        self._host = own_host(self._target[0])
        faults, seed = parse_teleop_faults(args.faults), args.seed or 1
        self._vehicles: dict[int, VehicleModel] = {}
        if args.role in ("vehicle", "both"):
            self._vehicles = {
                ident: VehicleModel(ident, now_us, rate_hz=args.rate, faults=faults, seed=seed) for ident in ids
            }
        self._cockpit: CockpitModel | None = None
        if args.role in ("cockpit", "both"):
            self._cockpit = CockpitModel(ids, now_us, keys=parse_keys(args.script))
        self._turns = Turns(self._turn)
        self._sockets: dict[int, DatagramSocket] = {}
        self._commands_to = {ident: (self._target[0], VEHICLE_PORT + place) for place, ident in enumerate(ids)}
        self._centre = DatagramSocket(self._on_report)
        self._centre_address: Address | None = None

    def open(self) -> None:
        """Open the sockets."""
        address = self._centre.open(self._host, 0)
        if self._cockpit is not None:
            self._centre_address = ("127.0.0.1", address[1])
            if sys.stdin is not None and sys.stdin.isatty():
                asyncio.get_running_loop().add_reader(sys.stdin, self._on_keys)
        for ident in self._vehicles:
            sock = self._sockets[ident] = DatagramSocket(partial(self._on_command, ident))
            port = open_near(sock, self._host, self._commands_to[ident][1])[1]
            if self._cockpit is not None:
                self._commands_to[ident] = ("127.0.0.1", port)
        self._turns.soon()

    def close(self) -> None:
        """Close the sockets."""
        self._turns.close()
        self._centre.close()
        for sock in self._sockets.values():
            sock.close()

    def _on_keys(self) -> None:
        for key in sys.stdin.readline():
            if self._cockpit is not None:
                self._cockpit.press(key, _us(time.monotonic()))
        self._turns.soon()

    def _on_command(self, ident: int, data: bytes, sender: Address) -> None:
        del sender
        self._vehicles[ident].on_datagram(data, _us(time.monotonic()))

    def _on_report(self, data: bytes, sender: Address) -> None:
        del sender
        if self._cockpit is not None:
            self._cockpit.on_datagram(data, _us(time.monotonic()))

    def _turn(self, now: float) -> float | None:
        now_us = _us(now)
        due_us = []
        for ident, vehicle in self._vehicles.items():
            vehicle.on_tick(now_us)
            for data in vehicle.take_datagrams():
                self._sockets[ident].send(data, self._target)
                if self._centre_address is not None:
                    self._sockets[ident].send(data, self._centre_address)
            due_us.append(vehicle.next_deadline_us)
        if self._cockpit is not None:
            self._cockpit.on_tick(now_us)
            self._say(self._cockpit)
            due_us.append(self._cockpit.next_deadline_us)
        return min(due_us) / _US

    def _say(self, cockpit: CockpitModel) -> None:
        ctrl_port, trigger_port = self._ports
        for kind, ident, data in cockpit.take_datagrams():
            if kind == "downlink":
                self._centre.send(data, self._commands_to[ident])
            else:
                self._centre.send(data, (self._target[0], ctrl_port if kind == "ctrl" else trigger_port))

    def figures(self, kind: str) -> dict[str, Any]:
        """What was sent and what came."""
        vehicles = self._vehicles.values()
        faults: dict[str, int] = {}
        for vehicle in vehicles:
            for name, count in vehicle.injected.items():
                faults[name] = faults.get(name, 0) + count
        said = self._cockpit.counters if self._cockpit is not None else {}
        return {
            "type": kind,
            "seconds": round(time.monotonic() - self._began, 1),
            "uplinks": sum(vehicle.counters["uplinks"] for vehicle in vehicles),
            "commands": sum(vehicle.counters["commands"] for vehicle in vehicles),
            "reports": said.get("reports", 0),
            **{name: said.get(name, 0) for name in ("ctrl", "trigger", "downlink")},
            "speed_kmh": {f"{ident:03X}": round(car.speed_m_s * 3.6, 1) for ident, car in self._vehicles.items()},
            "faults": {name: count for name, count in faults.items() if count},
        }


def _us(now: float) -> int:
    return round(now * _US)
