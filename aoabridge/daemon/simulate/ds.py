"""``simulate ds``: a driver station, and with ``--robot`` the robot too, on real sockets."""

import argparse
import asyncio
import contextlib
import time
from typing import Any, Final

from aoabridge.adapters.udp import Address, DatagramSocket, StreamServer
from aoabridge.daemon.simulate import Show, conclude, every_second
from aoabridge.daemon.simulate.turns import Copies, Turns, address_of, open_near, own_host
from aoabridge.simulators.ds import DriverStation, DsSettings, RobotLink
from aoabridge.simulators.frc_faults import FrcFaults, parse_frc_faults
from aoabridge.simulators.rio import RobotEnd

__all__ = ["run"]

FMS_UDP_PORT, FMS_TCP_PORT, CONTROL_PORT = 1160, 1750, 1121
ROBOT_PORT, ROBOT_PORT_WITH_FMS, STATUS_PORT, ROBOT_TCP_PORT = 1110, 1115, 1150, 1740
RETRY_S = 5.0
OWN = "127.0.0.1"  # driver station and robot talk to each other on this machine only
FIELD: Final = "ds2fms-tcp"
SENT: Final = (
    "ds2fms-udp", FIELD, "ds2rio-udp", "rio2ds-udp", "ds2rio-tcp", "rio2ds-tcp",
)  # fmt: skip


async def run(args: argparse.Namespace, show: Show, stopped: asyncio.Event) -> bool:
    """Play until stopped; always True: a driver station without field is no failure."""
    bench = _Bench(args)
    try:
        await bench.open()
        await every_second(stopped, lambda: show(bench.figures("tick")))
    finally:
        await bench.close()
    return conclude(show, bench.figures("summary"), True)


class _Bench:
    """The driver station's sockets towards the field, and the pair with the robot if there is one."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._began = now = time.monotonic()
        settings = DsSettings(
            args.team, args.generation, args.udp_port or CONTROL_PORT, args.battery, with_robot=args.robot
        )
        self._fms = address_of(args.to or args.fms, (OWN, FMS_UDP_PORT))
        self._tcp_port = args.tcp_port or FMS_TCP_PORT
        self._faults = FrcFaults(parse_frc_faults(args.faults), seed=args.seed or 1, loss=args.loss)
        self._copies = Copies(args.copy, SENT)
        self._turns = Turns(self._turn)
        self.station = DriverStation(settings, now)
        self._socket = DatagramSocket(self._on_control)
        self._stream = StreamServer(self._on_connection, self._on_stream)
        self._robot = _Robot(self, now, args.battery) if args.robot else None
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Open all. OSError: the port for control datagrams is taken."""
        self._socket.open(own_host(self._fms[0]), self.station.settings.udp_port)
        self.keep(self._stream, self._fms[0], self._tcp_port)
        if self._robot is not None:
            await self._robot.open()
        self._turns.soon()

    def keep(self, stream: StreamServer, host: str, port: int) -> None:
        """Keep a connection, made anew after RETRY_S."""
        self._tasks.append(asyncio.get_running_loop().create_task(_keep(stream, host, port)))

    async def close(self) -> None:
        """End everything."""
        self._turns.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._socket.close()
        await self._stream.close()
        if self._robot is not None:
            await self._robot.close()
        await self._copies.close()

    def soon(self) -> None:
        """Ask for a turn."""
        self._turns.soon()

    def _on_control(self, data: bytes, sender: Address) -> None:
        del sender
        self.station.on_datagram(data, time.monotonic())

    def _on_connection(self, number: int, peer: Address | None) -> None:
        del number
        if peer is None:
            self.station.on_closed()
        else:
            self.station.on_connected(time.monotonic())
        self._turns.soon()

    def _on_stream(self, number: int, data: bytes) -> None:
        del number
        self.station.on_stream(data)
        self._turns.soon()

    def _turn(self, now: float) -> float | None:
        station = self.station
        station.on_tick(now)
        for data in station.take_datagrams():
            self.send("ds2fms-udp", self._socket, data, self._fms)
        for data in station.take_stream():
            self.write(FIELD, self._stream, data)
            if self._faults.closes(FIELD):
                self._stream.close_all()
        due = station.next_deadline(now)
        return due if self._robot is None else min(due, self._robot.turn(now))

    def send(self, protocol: str, sock: DatagramSocket, data: bytes, target: Address) -> int:
        """Send one datagram with its faults and copies; returns how many left."""
        sent = self._faults.datagrams(protocol, data)
        for datagram in sent:
            sock.send(datagram, target)
            self._copies.datagram(protocol, datagram)
        return len(sent)

    def write(self, protocol: str, stream: StreamServer, data: bytes, number: int | None = None) -> None:
        """Write to a connection (all, if None) with faults and copies."""
        for piece, pause_s in self._faults.pieces(protocol, number or 0, data):
            asyncio.get_running_loop().call_later(pause_s, self._write, protocol, stream, piece, number)

    def _write(self, protocol: str, stream: StreamServer, piece: bytes, number: int | None) -> None:
        if number is None:
            stream.send(piece)
        else:
            stream.send_to(number, piece)
        self._copies.stream(protocol, piece)

    def figures(self, kind: str) -> dict[str, Any]:
        """What was sent and what came."""
        station, now = self.station, time.monotonic()
        return {
            "type": kind,
            "seconds": round(now - self._began, 1),
            "field": "connected" if self._stream.peers else "-",
            "mode": station.mode,
            "enabled": station.enabled,
            "estop": station.estop,
            **{name: station.counters[name] for name in ("datagrams_out", "datagrams_in", "frames_out", "frames_in")},
            "robot": None if self._robot is None else self._robot.figures(),
            "faults": dict(self._faults.injected),
            "last": station.notes[-1] if station.notes else None,
        }


class _Robot:
    """Driver station and robot to each other; a port that is taken is replaced by a free one: both ends are ours."""

    def __init__(self, bench: _Bench, now: float, battery_volts: float) -> None:
        self._bench = bench
        self._link = RobotLink(bench.station, now, wall_offset_s=time.time() - now)
        self._robot = RobotEnd(now, battery_volts=battery_volts)
        self._ports: dict[str, Address] = {}
        self._ds_socket = DatagramSocket(self._on_status)
        self._robot_sockets = {name: DatagramSocket(self._on_control) for name in ("robot", "robot_with_fms")}
        self._server = StreamServer(self._on_robot_connection, self._on_robot_stream)
        self._client = StreamServer(self._on_ds_connection, self._on_ds_stream)

    async def open(self) -> None:
        """Open both ends."""
        self._ports["status"] = open_near(self._ds_socket, OWN, STATUS_PORT)
        for name, port in (("robot", ROBOT_PORT), ("robot_with_fms", ROBOT_PORT_WITH_FMS)):
            self._ports[name] = open_near(self._robot_sockets[name], OWN, port)
        try:
            self._ports["console"] = await self._server.listen(OWN, ROBOT_TCP_PORT)
        except OSError:
            self._ports["console"] = await self._server.listen(OWN, 0)
        self._bench.keep(self._client, *self._ports["console"])

    async def close(self) -> None:
        """Close both ends."""
        for sock in (self._ds_socket, *self._robot_sockets.values()):
            sock.close()
        await self._client.close()
        await self._server.close()

    def _on_control(self, data: bytes, sender: Address) -> None:
        del sender
        self._robot.on_datagram(data, time.monotonic())
        self._bench.soon()

    def _on_status(self, data: bytes, sender: Address) -> None:
        del sender
        self._link.on_datagram(data)

    def _on_robot_connection(self, number: int, peer: Address | None) -> None:
        self._robot.on_connection(number, peer is not None)
        self._bench.soon()

    def _on_robot_stream(self, number: int, data: bytes) -> None:
        self._robot.on_stream(number, data)

    def _on_ds_connection(self, number: int, peer: Address | None) -> None:
        del number
        if peer is None:
            self._link.on_closed()
        else:
            self._link.on_connected(time.monotonic())
        self._bench.soon()

    def _on_ds_stream(self, number: int, data: bytes) -> None:
        """The console is for viewers; a driver station shows it, this one does not."""

    def turn(self, now: float) -> float:
        """Both ends' share of the turn."""
        bench, link, robot = self._bench, self._link, self._robot
        link.on_tick(now)
        robot.on_tick(now)
        to_robot = self._ports["robot_with_fms" if bench.station.fms_attached(now) else "robot"]
        for data in link.take_datagrams():
            if not bench.send("ds2rio-udp", self._ds_socket, data, to_robot):
                bench.station.lost_packets += 1
        for data in robot.take_datagrams():
            bench.send("rio2ds-udp", self._robot_sockets["robot"], data, self._ports["status"])
        for data in link.take_stream():
            bench.write("ds2rio-tcp", self._client, data)
        for number, data in robot.take_frames():
            bench.write("rio2ds-tcp", self._server, data, number)
        return min(link.next_deadline(now), robot.next_deadline(now))

    def figures(self) -> dict[str, Any]:
        """Ports in use, and what went both ways."""
        ports = {name: address[1] for name, address in self._ports.items()}
        return {
            **ports,
            "commands": self._robot.counters["datagrams_in"],
            "answers": self._link.counters["datagrams_in"],
        }


async def _keep(stream: StreamServer, host: str, port: int) -> None:
    while True:
        if not stream.peers:
            with contextlib.suppress(OSError):
                await stream.connect(host, port)
        await asyncio.sleep(RETRY_S)
