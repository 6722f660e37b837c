"""``simulate fms``: a field that runs one match, on real sockets."""

import argparse
import asyncio
import time
from typing import Any

from aoabridge.adapters.udp import Address, DatagramSocket, StreamServer
from aoabridge.codecs.frc_ds.enums import TournamentLevel
from aoabridge.daemon.simulate import Show, conclude, every_second
from aoabridge.daemon.simulate.turns import Copies, Turns, address_of, own_host
from aoabridge.simulators.fms import CONTROL_PORT, LITE_PORT, FieldSettings, FmsSimulator
from aoabridge.simulators.frc_faults import FrcFaults, parse_frc_faults
from aoabridge.simulators.match import MatchSettings, parse_stop, parse_team

__all__ = ["field_settings", "run"]

UDP_PORT, TCP_PORT = 1160, 1750
DEFAULT_TEAM = "red1=1503"
MAX_PEERS = 32
UDP, TCP = "fms2ds-udp", "fms2ds-tcp"


def field_settings(args: argparse.Namespace) -> FieldSettings:
    """The match that the options describe; ValueError."""
    level = args.level.upper()
    if level not in TournamentLevel.__members__:
        raise ValueError(
            f"unknown level {args.level!r}: {', '.join(name.lower() for name in TournamentLevel.__members__)}"
        )
    return FieldSettings(
        teams=dict(map(parse_team, args.team or [DEFAULT_TEAM])),
        target=address_of(args.to, ("127.0.0.1", LITE_PORT if args.lite else CONTROL_PORT)),
        match=MatchSettings(args.pre, args.auto, args.pause, args.teleop, args.post, args.speed),
        estops=dict(map(parse_stop, args.estop)),
        astops=dict(map(parse_stop, args.astop)),
        level=TournamentLevel[level],
        match_number=args.match,
        play_number=args.play,
        event=args.event,
        game_data=args.game_data,
        game_data_at_s=args.game_data_at,
        lite=args.lite,
        month_base=args.month_base,
        challenge=args.challenge,
        versions=args.versions,
    )


async def run(args: argparse.Namespace, show: Show, stopped: asyncio.Event) -> bool:
    """Run the match to its end or until stopped; always True: a field without driver stations is no failure."""
    field = _Field(args, stopped)
    try:
        await field.open()
        await every_second(stopped, lambda: show(field.figures("tick")))
    finally:
        await field.close()
    return conclude(show, field.figures("summary"), True)


class _Field:
    def __init__(self, args: argparse.Namespace, stopped: asyncio.Event) -> None:
        self._began = time.monotonic()
        self._stopped = stopped
        self._faults = FrcFaults(parse_frc_faults(args.faults), seed=args.seed or 1)
        self.simulator = FmsSimulator(field_settings(args), self._began, wall_offset_s=time.time() - self._began)
        self._host = own_host(self.simulator.settings.target[0])
        self._ports = (args.udp_port or UDP_PORT, args.tcp_port or TCP_PORT)
        self._copies = Copies(args.copy, (UDP, TCP))
        self._turns = Turns(self._turn)
        self._socket = DatagramSocket(self._on_datagram)
        self._server = StreamServer(self._on_connection, self._on_stream, max_peers=MAX_PEERS)

    async def open(self) -> None:
        """Listen. OSError: a port is taken."""
        self._socket.open(self._host, self._ports[0])
        await self._server.listen(self._host, self._ports[1])
        self._turns.soon()

    async def close(self) -> None:
        """End everything."""
        self._turns.close()
        self._socket.close()
        await self._server.close()
        await self._copies.close()

    def _on_datagram(self, data: bytes, sender: Address) -> None:
        self.simulator.on_datagram(data, sender, time.monotonic())

    def _on_connection(self, number: int, peer: Address | None) -> None:
        self.simulator.on_connection(number, peer, time.monotonic())
        self._turns.soon()

    def _on_stream(self, number: int, data: bytes) -> None:
        self.simulator.on_stream(number, data, time.monotonic())
        self._turns.soon()

    def _turn(self, now: float) -> float | None:
        simulator = self.simulator
        simulator.on_tick(now)
        for data, target in simulator.take_datagrams():
            for sent in self._faults.datagrams(UDP, data):
                self._socket.send(sent, target)
                self._copies.datagram(UDP, sent)
        for number, frames in simulator.take_frames():
            for piece, pause_s in self._faults.pieces(TCP, number, frames):
                self._write(number, piece, pause_s)
            if self._faults.closes(TCP):
                self._server.close_connection(number)
        for number in simulator.take_closures():
            self._server.close_connection(number)
        if simulator.finished(now):
            self._stopped.set()
        return simulator.next_deadline(now)

    def _write(self, number: int, piece: bytes, pause_s: float) -> None:
        if pause_s:
            asyncio.get_running_loop().call_later(pause_s, self._write, number, piece, 0.0)
            return
        self._server.send_to(number, piece)
        self._copies.stream(TCP, piece)

    def figures(self, kind: str) -> dict[str, Any]:
        """What was sent and what came."""
        now = time.monotonic()
        simulator = self.simulator
        return {
            "type": kind,
            "seconds": round(now - self._began, 1),
            "period": simulator.period(now),
            "match_s": round(simulator.clock_s(now), 1),
            **{name: simulator.counters[name] for name in ("datagrams_out", "datagrams_in", "frames_out", "frames_in")},
            "lost": simulator.lost(now),
            "faults": dict(self._faults.injected),
            "last": simulator.notes[-1] if simulator.notes else None,
        }
