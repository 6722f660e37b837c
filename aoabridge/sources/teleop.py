"""TeleopSource: datagrams of the remote-driving centre in, publications, copies and relayed commands out.

A downlink is a driving command: only one that was received and checked ever leaves, unchanged, and only if the
configuration names a target. Nothing from NetworkTables or a phone can become one.
"""

from aoabridge.codecs import teleop
from aoabridge.codecs.host_port import split_host_port
from aoabridge.codecs.teleop import Downlink, HomeCtrl, HomeTrigger, TeleopPacket, Uplink
from aoabridge.errors import DecodeError, TruncatedError, UnknownPacketError
from aoabridge.sources import teleop_topics as topics
from aoabridge.sources.base import Address, Endpoint, OutgoingDatagram, SenderFilter, SourceIssue, SourceStatus
from aoabridge.sources.board import TopicBoard
from aoabridge.sources.meters import Meter
from aoabridge.sources.settings import DEFAULT_UPLINK_PORT, TeleopSettings
from aoabridge.sources.teleop_flow import BadShare, Flow
from aoabridge.values import Publication, Withdrawal

__all__ = ["CHECK_CODES", "COUNTERS", "TeleopSource"]

REPORT_S = 1.0
SILENT_S = 5.0
BAD_FRACTION = 0.05
MAX_ERROR_TEXT = 200
COUNTERS = (
    "Received",
    "Truncated",
    "BadLength",
    "BadMagic",
    "WrongPort",
    "ForeignSource",
    "UnknownVehicle",
    "ForwardedUI",
    "ForwardedPanoSim",
    "ForwardErrors",
    "DownlinksRelayed",
    "RelayRefused",
)
DECODE_COUNTERS = ("Truncated", "BadLength", "BadMagic", "WrongPort")
CHECK_CODES = ("unknown_vehicle", "unknown_enum", "undocumented", "out_of_range", "reserved_nonzero")
EDGES = {Uplink: ("vehicle_state", "ctrl_sign", "ctrl_info"), Downlink: ("ctrl_sign",), HomeCtrl: ()}
KINDS = {"uplink": ("uplink",), "ctrl": ("home_ctrl",), "trigger": ("home_trigger",), "downlink": ("downlink",)}
COCKPIT = "Cockpit"
COCKPIT_FLOW = ("ctrl", 0)


class TeleopSource:
    """One ``[sources.teleop]``: see ``sources.base.Source`` for the methods."""

    def __init__(self, settings: TeleopSettings, bridge_name: str) -> None:
        self._settings = settings
        self._board = TopicBoard(f"/Teleop/{settings.name or bridge_name}/", 0)
        self._link = self._board.writer("link")
        self._period_s = 1 / settings.publish_hz if settings.publish_hz else 0.0
        self._filter = SenderFilter(settings.allow_from)
        self._counts: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        self._checks: dict[str, int] = dict.fromkeys(CHECK_CODES, 0)
        self._triggers = 0
        self._names = _vehicle_names(settings)
        self._endpoints = tuple(_endpoints(settings))
        self._own: dict[str, Address] = {}
        stale = settings.stale_ms
        self._flows: dict[tuple[str, int], Flow] = {}
        for vehicle, name in self._names.items():
            self._flows["uplink", vehicle] = Flow("uplink", name, stale.uplink / 1000)
            if settings.downlink_ports:
                self._flows["downlink", vehicle] = Flow("downlink", name, stale.downlink / 1000)
        if settings.ctrl_port:
            self._flows[COCKPIT_FLOW] = Flow("ctrl", COCKPIT, stale.ctrl / 1000)
        self._uplinks = Meter()
        self._out: list[OutgoingDatagram] = []
        self._last_error = ""
        self._old_layout = 0
        self._started_at: float | None = None
        self._report_at = float("-inf")
        self._share = BadShare()
        self._now = 0.0

    @property
    def relays(self) -> bool:
        """Whether received commands are passed on."""
        return bool(self._settings.downlink_relay)

    @property
    def counters(self) -> dict[str, int]:
        """Events since start; checks as ``Check/<code>``."""
        return self._counts | {f"Check/{code}": count for code, count in self._checks.items()}

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The listening ports by kind, and one sending socket per target."""
        return self._endpoints

    def on_endpoint(self, endpoint_key: str, address: Address | None, now: float) -> None:
        """Remember our own sending sockets: what comes from them is dropped."""
        self._begin(now)
        if address is None:
            self._own.pop(endpoint_key, None)
        elif any(endpoint.key == endpoint_key and endpoint.direction == "send" for endpoint in self._endpoints):
            self._own[endpoint_key] = address

    def on_send_failed(self, endpoint_key: str, now: float) -> None:
        """A copy or command could not be sent."""
        self._begin(now)
        self._counts["ForwardErrors"] += 1
        self._last_error = f"{endpoint_key}: could not be sent"

    def on_connection(self, endpoint_key: str, connection_id: int, peer: Address | None, now: float) -> None:
        """There are no streams."""

    def on_stream(self, endpoint_key: str, connection_id: int, data: bytes, now: float) -> None:
        """There are no streams."""

    def take_closures(self) -> list[tuple[str, int]]:
        """There are no streams."""
        return []

    def on_datagram(self, endpoint_key: str, data: bytes, sender: Address, now: float) -> None:
        """One datagram: filter, decode, forward or relay, check, publish; in this order."""
        self._begin(now)
        kinds = KINDS.get(endpoint_key.partition(":")[0])
        if kinds is None or self._is_own(sender):
            return
        if not self._filter.allows(sender[0]):
            self._counts["ForeignSource"] += 1
            return
        self._counts["Received"] += 1
        try:
            packet = teleop.decode(data, kinds)
        except DecodeError as error:
            self._refuse(error, len(data))
            return
        if isinstance(packet, Uplink):
            self._forward(data)
        problems = teleop.check(packet, self._names)
        for problem in problems:
            self._checks[problem.partition(":")[0]] += 1
        if isinstance(packet, Downlink):
            self._relay(data, problems)
        self._take(packet, data, now)

    def _is_own(self, sender: Address) -> bool:
        for host, port in self._own.values():
            if sender[1] == port and (sender[0] == host or sender[0].startswith("127.") or sender[0] == "::1"):
                return True
        return False

    def _refuse(self, error: DecodeError, size: int) -> None:
        if isinstance(error, TruncatedError):
            counter = "Truncated"
        elif isinstance(error, UnknownPacketError):
            counter = "WrongPort" if isinstance(error.kind, str) else "BadMagic"
        else:
            counter = "BadLength"
        self._counts[counter] += 1
        self._last_error = str(error)[:MAX_ERROR_TEXT]
        self._old_layout = size if "older sibling program" in str(error) else 0

    def _forward(self, data: bytes) -> None:
        for key, counter in (("forward_ui", "ForwardedUI"), ("forward_panosim", "ForwardedPanoSim")):
            target = getattr(self._settings, key)
            if target:
                self._out.append((key, data, split_host_port(target)))
                self._counts[counter] += 1

    def _relay(self, data: bytes, problems: list[str]) -> None:
        target = self._settings.downlink_relay
        if not target:
            return
        if problems:
            self._counts["RelayRefused"] += 1
            return
        self._out.append(("downlink_relay", data, split_host_port(target)))
        self._counts["DownlinksRelayed"] += 1

    def _take(self, packet: TeleopPacket, data: bytes, now: float) -> None:
        if isinstance(packet, HomeTrigger):
            self._triggers += 1
            out = self._board.writer("trigger", f"{COCKPIT}/")
            topics.write_trigger(packet, data, out, self._triggers)
            return
        if isinstance(packet, Uplink):
            self._uplinks.mark(now)
        place = COCKPIT_FLOW if isinstance(packet, HomeCtrl) else (teleop.kind_of(packet), packet.vehicle_id)
        flow = self._flows.get(place)
        if flow is None:
            self._counts["UnknownVehicle"] += 1
            return
        flow.mark(now)
        flow.write_connected(self._link, now)
        edges = tuple(getattr(packet, name) for name in EDGES[type(packet)])
        flow.waiting = (packet, data)
        if edges != flow.edges or now >= flow.published_at + self._period_s:
            self._publish(flow, now)
        flow.edges = edges

    def _publish(self, flow: Flow, now: float) -> None:
        if flow.waiting is None:
            return
        packet, data = flow.waiting
        flow.waiting, flow.published_at, flow.is_published = None, now, True
        out, scale = self._board.writer(flow.origin, f"{flow.subtree}/"), self._settings.scale
        if isinstance(packet, Uplink):
            topics.write_uplink(packet, data, out, scale, signed_position=self._settings.signed_position)
        elif isinstance(packet, Downlink):
            topics.write_downlink(packet, data, out, scale)
        elif isinstance(packet, HomeCtrl):
            vehicle = packet.vehicle_id
            observed = "none" if vehicle == 0 else self._names.get(vehicle, f"unknown({vehicle})")
            topics.write_home_ctrl(packet, data, out, scale, observed)

    def _begin(self, now: float) -> None:
        self._now = now
        if self._started_at is None:
            self._started_at = now

    def on_tick(self, now: float) -> None:
        """Waiting packets, silence, figures."""
        self._begin(now)
        for flow in self._flows.values():
            if now >= flow.published_at + self._period_s:
                self._publish(flow, now)
            flow.write_connected(self._link, now)
            if flow.is_published and not flow.meter.is_fresh(now, self._settings.forget_s):
                flow.forget()
                self._board.forget(flow.origin)
        if now >= self._report_at:
            self._report_at = now + REPORT_S
            self._report(now)

    def _report(self, now: float) -> None:
        for flow in self._flows.values():
            flow.write_figures(self._link, now)
        out = self._link.below("Link/")
        for name, count in self.counters.items():
            out.number(name, count)
        out.flag("DownlinkRelay", self.relays)
        out.text("LastError", self._last_error)
        self._uplinks.roll(now)
        self._share.report(self._counts["Received"], self._bad())

    def _bad(self) -> int:
        return sum(self._counts[name] for name in DECODE_COUNTERS)

    def close(self, now: float) -> None:
        """Nothing: no vehicle is told anything by the bridge itself."""

    def take_publications(self) -> list[Publication | Withdrawal]:
        """What is to be published, in order."""
        return self._board.take(self._now)

    def take_datagrams(self) -> list[OutgoingDatagram]:
        """Copies of vehicle reports and relayed commands, octets unchanged."""
        out, self._out = self._out, []
        return out

    def status(self, now: float) -> SourceStatus:
        """Figures of the uplinks, and what is wrong now."""
        self._uplinks.roll(now)
        age_s = self._uplinks.age_s(now)
        issues = []
        started_at = now if self._started_at is None else self._started_at
        if (now - started_at if age_s is None else age_s) > SILENT_S:
            issues.append(SourceIssue("source-silent", "teleop: no vehicle report received"))
        if self._share.fraction > BAD_FRACTION:
            sentence = f"teleop: {self._share.fraction:.0%} undecodable"
            if self._old_layout:
                sentence = f"teleop: {self._old_layout}-octet uplinks of an older program"
            issues.append(SourceIssue("source-bad", sentence))
        gaps = sum(flow.long_gaps for (kind, _), flow in self._flows.items() if kind == "uplink")
        return SourceStatus(self._uplinks.rate_hz, age_s, self._bad(), gaps, tuple(issues), self.relays)

    def next_deadline(self, now: float) -> float | None:
        """When ``on_tick`` is wanted."""
        due = [self._report_at]
        for flow in self._flows.values():
            due += [at for at in flow.deadlines(self._period_s, self._settings.forget_s) if at > now]
        return max(now, min(due))


def _vehicle_names(settings: TeleopSettings) -> dict[int, str]:
    given = {int(text, 16): name for text, name in settings.vehicle_names.items()}
    return {vehicle: given.get(vehicle, f"{vehicle:03X}") for vehicle in settings.vehicles}


def _endpoints(settings: TeleopSettings) -> list[Endpoint]:
    ports = {
        "uplink": (settings.port or DEFAULT_UPLINK_PORT, *settings.vehicle_ports),
        "ctrl": (settings.ctrl_port,),
        "trigger": (settings.trigger_port,),
        "downlink": settings.downlink_ports,
    }
    endpoints = [
        Endpoint(f"{kind}:{port}", "udp", settings.bind, port, settings.allow_from)
        for kind, listed in ports.items()
        for port in listed
        if port
    ]
    for key in ("forward_ui", "forward_panosim", "downlink_relay"):
        target = getattr(settings, key)
        if target:
            host, port = split_host_port(target)
            any_address = "::" if ":" in host else "0.0.0.0"
            endpoints.append(Endpoint(key, "udp", any_address, port, direction="send", host=host))
    return endpoints
