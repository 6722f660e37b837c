"""The settings of the sources; their defaults are the defaults of the configuration file."""

import msgspec

__all__ = ["DEFAULT_UPLINK_PORT", "FrcSettings", "J519Settings", "StaleFrc", "StaleTeleop", "TeleopSettings"]

DEFAULT_UPLINK_PORT = 10010  # teleop's ``port = 0``: be the user interface, take the copies


class StaleFrc(msgspec.Struct, frozen=True):
    """Silence after which a link counts as not connected, milliseconds."""

    fms: int = 1000
    robot: int = 250


class FrcSettings(msgspec.Struct, frozen=True):
    """The FMS, driver station and robot protocols as a source.

    ``listen``: ``protocol:port``; ``connect``: ``rio2ds-tcp@host:port``. ``publish_hz`` limits numbers, 0 = every
    packet. ``max_rate``: datagrams or frames per second and endpoint.
    """

    enabled: bool = False
    name: str = ""
    bind: str = "127.0.0.1"
    listen: tuple[str, ...] = ("ds2rio-udp:1110", "rio2ds-udp:1150")
    connect: tuple[str, ...] = ()
    replay: str = ""
    replay_speed: float = 1.0
    replay_loop: bool = False
    allow_from: tuple[str, ...] = ()
    text: str = "exact"
    month_base: int = 0
    rumble_order: str = "left-right"
    publish_hz: int = 20
    stale_ms: StaleFrc = StaleFrc()
    forget_s: float = 5.0
    max_rate: int = 500
    max_teams: int = 16
    write_fms_info: bool = False
    write_driver_station: bool = False
    info_from: str = "ds2rio"


class J519Settings(msgspec.Struct, frozen=True):
    """FANUC Stream Motion of one robot as a source.

    ``host`` empty = passive on ``bind``:``port``; ``version`` may be "query". ``axes`` are those whose limits are asked
    for. ``publish_hz`` 0 = every Status; bits and State leave at once.
    """

    enabled: bool = False
    name: str = ""
    host: str = ""
    port: int = 60015
    bind: str = "127.0.0.1"
    allow_from: tuple[str, ...] = ()
    generation: str = "classic"
    byte_order: str = "big"
    version: int | str = 1
    request_limits: bool = True
    axes: int = 6
    publish_hz: int = 50
    stale_ms: int = 250
    forget_s: float = 5.0


class StaleTeleop(msgspec.Struct, frozen=True):
    """Silence after which a kind of datagram counts as not connected, milliseconds."""

    uplink: int = 500
    downlink: int = 300
    ctrl: int = 100


class TeleopSettings(msgspec.Struct, frozen=True):
    """The remote driving protocol as a source; nothing is forwarded or relayed unless an address stands here.

    ``port`` 0 = DEFAULT_UPLINK_PORT; ``ctrl_port`` and ``trigger_port`` 0 = off. ``vehicle_names``: three hex digits
    -> name of the subtree. ``scale``: factors of the physical topics; without a factor there is no such topic.
    """

    enabled: bool = False
    name: str = ""
    bind: str = "127.0.0.1"
    allow_from: tuple[str, ...] = ()
    port: int = 0
    vehicle_ports: tuple[int, ...] = ()
    ctrl_port: int = 10015
    trigger_port: int = 10013
    downlink_ports: tuple[int, ...] = ()
    vehicles: tuple[int, ...] = (0x00A, 0x00B, 0x00C)
    vehicle_names: dict[str, str] = msgspec.field(default_factory=dict)
    forward_ui: str = ""
    forward_panosim: str = ""
    publish_hz: int = 50
    stale_ms: StaleTeleop = StaleTeleop()
    forget_s: float = 5.0
    scale: dict[str, float] = msgspec.field(default_factory=dict)
    signed_position: bool = False
    downlink_relay: str = ""
