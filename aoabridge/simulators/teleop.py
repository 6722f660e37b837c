"""Remotely driven vehicles and the cockpit that drives them, for the bench. Sans-IO; times are microseconds.

Raw units as sibling programs use them, unconfirmed: speed 0.01 km/h, angles 0.01 degree, position 1e-6 degree.
The pacing of commands is a class of its own, used here and by nothing else: the bridge originates no command.
"""

import math
import random
import re
from collections import Counter

import msgspec

from aoabridge.codecs import teleop
from aoabridge.codecs.teleop import Downlink, HomeCtrl, HomeTrigger, Uplink
from aoabridge.errors import DecodeError

__all__ = ["CockpitModel", "DownlinkPacer", "TeleopFaults", "VehicleModel", "parse_keys", "parse_teleop_faults"]

_US = 1_000_000
CIRCLE_M = 200.0
CRUISE_M_S = 10.0
TURN_DEG_S = 300.0  # how fast the wheel follows the cockpit's
MAX_ACCELERATION = 2.0  # m/s2 at a pedal of 100
COMMAND_LOST_US = 500_000
AUTO, REMOTE = 0, 1
NO_INFO, TAKEOVER, FAULT = 0, 1, 2
NOTHING, SYNC = 0, 2
CIRCLE_STEERING_DEG = 15.0
EARTH_M_PER_DEG = 111_320.0
CENTRE_DEG = (8.5, 50.0)  # longitude, latitude
RPM_PER_KMH = 40
CTRL_PERIOD_US = 10_000
DRIVE_PERIOD_US, RELEASE_PERIOD_US, RELEASES = 20_000, 80_000, 10
PING_MS = 5
SHORT_OCTETS, OLD_OCTETS = 16, 64


class TeleopFaults(msgspec.Struct, frozen=True):
    """Shares of the uplinks that go wrong, and moments in seconds (negative = never)."""

    drop: float = 0.0
    dup: float = 0.0
    corrupt: float = 0.0
    short: float = 0.0
    old64: float = 0.0
    stall_at_s: float = -1.0
    stall_s: float = 0.0
    takeover_at_s: float = -1.0
    fault_at_s: float = -1.0


NO_FAULTS = TeleopFaults()
_SHARE = re.compile(r"(drop|dup|corrupt|short|old64)=([0-9]+(?:\.[0-9]*)?)")
_STALL = re.compile(r"stall@([0-9]+(?:\.[0-9]*)?):([0-9]+(?:\.[0-9]*)?)")
_MOMENT = re.compile(r"(takeover|fault)@([0-9]+(?:\.[0-9]*)?)")


def parse_teleop_faults(text: str) -> TeleopFaults:
    """``drop=0.05,dup=0.05,corrupt=0.01,short=0.01,old64=0.01,stall@3:2,takeover@5,fault@8``; else ValueError."""
    values: dict[str, float] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        if (match := _SHARE.fullmatch(item)) and float(match[2]) <= 1:
            values[match[1]] = float(match[2])
        elif match := _STALL.fullmatch(item):
            values |= {"stall_at_s": float(match[1]), "stall_s": float(match[2])}
        elif match := _MOMENT.fullmatch(item):
            values[f"{match[1]}_at_s"] = float(match[2])
        else:
            known = "drop= dup= corrupt= short= old64= (0 to 1), stall@S:S, takeover@S, fault@S"
            raise ValueError(f"unknown fault {item!r}; known: {known}")
    return TeleopFaults(**values)


class VehicleModel:
    """One vehicle: drives a circle by itself, follows the cockpit while told to, stops when commands stay away.

    ``sent`` keeps count of the good uplinks that left, ``injected`` of what went wrong instead.
    """

    def __init__(
        self,
        vehicle_id: int,
        now_us: int,
        *,
        rate_hz: float = 50.0,
        faults: TeleopFaults = NO_FAULTS,
        seed: int = 1,
    ) -> None:
        self.vehicle_id = vehicle_id
        self.control = AUTO
        self.speed_m_s = CRUISE_M_S
        self.steering_deg = CIRCLE_STEERING_DEG
        self.injected: Counter[str] = Counter()
        self.counters: Counter[str] = Counter()
        self._stopping = False
        self._command: Downlink | None = None
        self._command_at_us = 0
        self._place_m = [CIRCLE_M, 0.0]
        self._heading_deg = 0.0
        self._faults = faults
        self._random = random.Random(seed * 65_536 + vehicle_id)
        self._began_us = self._last_us = self._next_us = now_us
        self._period_us = round(_US / rate_hz)
        self._out: list[bytes] = []

    @property
    def next_deadline_us(self) -> int:
        """When the next uplink is due."""
        return self._next_us

    def on_datagram(self, data: bytes, now_us: int) -> None:
        """A command; one for another vehicle is ignored."""
        try:
            packet = teleop.decode(data, ("downlink",))
        except DecodeError:
            self.counters["rejected"] += 1
            return
        if isinstance(packet, Downlink) and packet.vehicle_id == self.vehicle_id:
            self.counters["commands"] += 1
            self._command, self._command_at_us = packet, now_us
            self.control = REMOTE if packet.ctrl_sign == REMOTE else AUTO
            self._stopping = self._stopping and self.control == AUTO

    def on_tick(self, now_us: int) -> None:
        """Drive, and report what is due."""
        self._drive((now_us - self._last_us) / _US, now_us)
        self._last_us = now_us
        if now_us >= self._next_us:
            self._next_us = max(self._next_us + self._period_us, now_us)
            self._report(now_us)

    def take_datagrams(self) -> list[bytes]:
        """Remove and return the uplinks."""
        taken, self._out = self._out, []
        return taken

    def _drive(self, seconds: float, now_us: int) -> None:
        if self.control == REMOTE and now_us - self._command_at_us > COMMAND_LOST_US:
            self.control, self._stopping = AUTO, True
        acceleration, target_deg = self._wishes()
        self.speed_m_s = max(0.0, self.speed_m_s + acceleration * seconds)
        self._stopping = self._stopping and self.speed_m_s > 0
        if self.control == AUTO and not self._stopping:
            self.speed_m_s = min(self.speed_m_s, CRUISE_M_S)
        most = TURN_DEG_S * seconds
        self.steering_deg += min(max(target_deg - self.steering_deg, -most), most)
        way_m = self.speed_m_s * seconds
        self._heading_deg = (
            self._heading_deg - math.degrees(way_m / CIRCLE_M) * self.steering_deg / CIRCLE_STEERING_DEG
        ) % 360
        self._place_m[0] += way_m * math.sin(math.radians(self._heading_deg))
        self._place_m[1] += way_m * math.cos(math.radians(self._heading_deg))

    def _wishes(self) -> tuple[float, float]:
        """Acceleration in m/s2 and the wheel's target; the brake wins over the other pedal."""
        command = self._command
        if self._stopping:
            return -MAX_ACCELERATION, self.steering_deg
        if self.control == AUTO or command is None:
            return MAX_ACCELERATION, CIRCLE_STEERING_DEG
        pedal = -command.rc_brake_pedal if command.rc_brake_pedal > 0 else command.rc_acc_pedal
        return MAX_ACCELERATION * min(max(pedal, -100), 100) / 100, command.rc_steer / 100

    def uplink(self, now_us: int) -> Uplink:
        """What it would report now."""
        elapsed_s = (now_us - self._began_us) / _US
        faults = self._faults
        has_fault = 0 <= faults.fault_at_s <= elapsed_s
        asks = 0 <= faults.takeover_at_s <= elapsed_s and self.control == AUTO
        info = FAULT if self._stopping or has_fault else TAKEOVER if asks else NO_INFO
        kmh = self.speed_m_s * 3.6
        return Uplink(
            vehicle_id=self.vehicle_id,
            vehicle_state=int(has_fault),
            longitude=_degrees_1e6(CENTRE_DEG[0], self._place_m[0] * 1.556),  # metres per degree shrink with latitude
            latitude=_degrees_1e6(CENTRE_DEG[1], self._place_m[1]),
            heading=round(self._heading_deg * 100) % 36_000,
            speed=min(round(kmh * 100), 32_767),
            steering=round(self.steering_deg * 100),
            ctrl_sign=self.control,
            ctrl_info=info,
            rpm=min(round(kmh * RPM_PER_KMH), 32_767),
            unused0=0,
        )

    def _report(self, now_us: int) -> None:
        faults, elapsed_s = self._faults, (now_us - self._began_us) / _US
        if 0 <= faults.stall_at_s <= elapsed_s < faults.stall_at_s + faults.stall_s:
            self.injected["stall"] += 1
            return
        data = teleop.encode(self.uplink(now_us))
        if self._hits("drop"):
            return
        if self._hits("corrupt"):
            self._out.append(bytes([data[0] ^ 0xFF]) + data[1:])
        elif self._hits("short"):
            self._out.append(data[:SHORT_OCTETS])
        elif self._hits("old64"):
            self._out.append(data.ljust(OLD_OCTETS, b"\0"))
        else:
            copies = 2 if self._hits("dup") else 1
            self.counters["uplinks"] += copies
            self._out += [data] * copies

    def _hits(self, name: str) -> bool:
        share: float = getattr(self._faults, name)
        hit = share > 0 and self._random.random() < share
        self.injected[name] += hit
        return hit


def _degrees_1e6(centre_deg: float, metres: float) -> int:
    return round((centre_deg + metres / EARTH_M_PER_DEG) * 1e6)


class DownlinkPacer:
    """When a command may leave: every 20 ms while driving; on release ten of zero at 80 ms, then silence."""

    def __init__(self) -> None:
        self.driving = False
        self._releases = 0
        self._next_us: int | None = None

    def drive(self, now_us: int) -> None:
        """Take the wheel."""
        self.driving = True
        self._next_us = now_us

    def release(self, now_us: int) -> None:
        """Let go."""
        if self.driving:
            self.driving, self._releases, self._next_us = False, RELEASES, now_us

    @property
    def next_deadline_us(self) -> int | None:
        """When the next command is due, None = never."""
        return self._next_us

    def due(self, now_us: int) -> bool:
        """True if a command is to leave now."""
        if self._next_us is None or now_us < self._next_us:
            return False
        if self.driving:
            self._next_us = max(self._next_us + DRIVE_PERIOD_US, now_us)
        else:
            self._releases -= 1
            self._next_us = self._next_us + RELEASE_PERIOD_US if self._releases > 0 else None
        return True


def parse_keys(text: str) -> list[tuple[str, float]]:
    """``r@2,1@3,n@8`` -> keys with their second; ValueError."""
    keys = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, _, second = item.partition("@")
        if key not in set("rsn012") or not re.fullmatch(r"[0-9]+(\.[0-9]*)?", second):
            raise ValueError(f"{item!r} is not KEY@SECOND with a key of r s n 0 1 2")
        keys.append((key, float(second)))
    return sorted(keys, key=lambda pair: pair[1])


class CockpitModel:
    """The cockpit: its state all the time, a trigger per key, commands while it drives.

    Keys: ``r`` remote, ``s`` synchronise, ``n`` nothing, ``0`` to ``2`` choose a vehicle. ``take_datagrams`` gives
    (kind, vehicle id or 0, octets) with kind ``ctrl``, ``trigger`` or ``downlink``.
    """

    def __init__(self, vehicles: tuple[int, ...], now_us: int, *, keys: list[tuple[str, float]] | None = None) -> None:
        self.vehicle_id = vehicles[0] if vehicles else 0
        self._driven_id = 0  # keeps its commands, the last of zero too, when another one is chosen
        self.pacer = DownlinkPacer()
        self.counters: Counter[str] = Counter()
        self._vehicles = vehicles
        self._keys = list(keys or ())
        self._began_us = self._next_us = now_us
        self._out: list[tuple[str, int, bytes]] = []

    @property
    def next_deadline_us(self) -> int:
        """When ``on_tick`` is wanted."""
        paced = self.pacer.next_deadline_us
        return self._next_us if paced is None else min(self._next_us, paced)

    def press(self, key: str, now_us: int) -> None:
        """One key; others are passed over."""
        if key in "012" and key and int(key) < len(self._vehicles):
            self.pacer.release(now_us)
            self.vehicle_id = self._vehicles[int(key)]
        elif key in ("r", "s", "n") and self.vehicle_id:
            self._trigger({"r": REMOTE, "s": SYNC, "n": NOTHING}[key])
            if key == "r":
                self._driven_id = self.vehicle_id
                self.pacer.drive(now_us)
            elif key == "n":
                self.pacer.release(now_us)

    def on_datagram(self, data: bytes, now_us: int) -> None:  # noqa: ARG002  # the wheel is not moved by reports
        """A vehicle's report."""
        self.counters["reports"] += isinstance(_uplink(data), Uplink)

    def on_tick(self, now_us: int) -> None:
        """Keys of the script, the state, commands."""
        elapsed_s = (now_us - self._began_us) / _US
        while self._keys and self._keys[0][1] <= elapsed_s:
            self.press(self._keys.pop(0)[0], now_us)
        if now_us >= self._next_us:
            self._next_us = max(self._next_us + CTRL_PERIOD_US, now_us)
            self._say("ctrl", 0, teleop.encode(self._state(elapsed_s)))
        if self.pacer.due(now_us):
            self._say("downlink", self._driven_id, teleop.encode(self._command(elapsed_s)))

    def _state(self, elapsed_s: float) -> HomeCtrl:
        steering, pedal = self._controls(elapsed_s)
        return HomeCtrl(self.vehicle_id, steering, 0, pedal, 0, PING_MS)

    def _command(self, elapsed_s: float) -> Downlink:
        if not self.pacer.driving:
            return Downlink(self._driven_id, 0, 0, 0, AUTO, 0, 0)
        steering, pedal = self._controls(elapsed_s)
        return Downlink(self._driven_id, 1000, pedal, 0, REMOTE, 0, steering)

    def _controls(self, elapsed_s: float) -> tuple[int, int]:
        """Wheel in 0.01 degree and accelerator in percent: a driver who wavers."""
        return round(3000 * math.sin(elapsed_s)), round(20 + 10 * math.sin(elapsed_s / 2))

    def _trigger(self, state: int) -> None:
        self._say("trigger", 0, teleop.encode(HomeTrigger(state)))

    def _say(self, kind: str, vehicle_id: int, data: bytes) -> None:
        self.counters[kind] += 1
        self._out.append((kind, vehicle_id, data))

    def take_datagrams(self) -> list[tuple[str, int, bytes]]:
        """Remove and return what is to be sent."""
        taken, self._out = self._out, []
        return taken


def _uplink(data: bytes) -> teleop.TeleopPacket | None:
    try:
        return teleop.decode(data, ("uplink",))
    except DecodeError:
        return None
