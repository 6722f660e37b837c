"""One sentence per key of the configuration file, for the reference; a test holds it complete."""

from collections.abc import Mapping
from typing import Final

__all__ = ["MEANINGS", "SECTIONS"]

SECTIONS: Final[Mapping[str, str]] = {
    "nt.": "Where the robot is: exactly one of `team`, `server`, `embedded`. With none the bridge waits and says so.",
    "phone.": "What Android is told in the accessory handshake; apps match manufacturer and model.",
    "device.": "A named phone, known by serial, port, or both; its patterns are added to [access].",
    "access.": "Globs: `*` any run of characters including `/`, `?` one character. Deny wins over allow.",
    "sources.frc.": "FMS and driver station packets, published below `/FRC/<name>/`.",
    "sources.j519.": "FANUC Stream Motion, published below `/J519/<name>/`.",
    "sources.teleop.": "The remote-driving protocol, published below `/Teleop/<name>/`.",
}

_SOURCE: Final = {
    "enabled": "run this source",
    "name": "its name in topics; empty = the bridge's",
    "bind": "local address; another than loopback needs `allow_from`",
    "allow_from": "networks whose packets count; loopback always does",
    "publish_hz": "most values per second and topic; 0 = every packet",
    "forget_s": "silence after which values are withdrawn, seconds",
}
_ACCESS: Final = {
    "put_allow": "topics that phones may put",
    "put_deny": "topics that phones may not put",
    "subscribe_allow": "topics that phones may subscribe",
    "subscribe_deny": "topics that phones may not subscribe",
}


def _under(prefix: str, texts: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix}.{name}": text for name, text in texts.items()}


MEANINGS: Final[Mapping[str, str]] = {
    "schema": "version of the file's format",
    "name": "name of this bridge: `/AOABridge/<name>`, client `aoabridge-<name>`; default: the host name",
    **_under(
        "relay",
        {
            "max_line_bytes": "longest line that a phone may write",
            "max_subscriptions": "keys and subtrees that one phone may subscribe",
            "put_rate": "puts per second that one phone may keep up",
            "put_burst": "puts that one phone may send at once",
            "sample_lane": 'samples kept per topic that was subscribed with `"all"`',
            "error_lines_per_s": "error lines to one phone; the rest are summed up",
        },
    ),
    **_under(
        "log",
        {
            "level": "least serious line that is logged",
            "format": "auto = the journal if there is one",
            "ring": "lines kept in memory for `aoabridge log` and the page",
            "levels": "level per logger",
        },
    ),
    **_under(
        "record",
        {
            "enabled": "record from the start of the daemon",
            "dir": "directory; empty = `records` in the state directory",
            "topics": "which topics",
            "phone_lines": "record the lines of phones too",
            "rotate_mib": "begin a new file at this size",
            "keep_mib": "delete the oldest files beyond this sum",
            "min_free_mib": "stop when the disk has less left",
        },
    ),
    **_under(
        "nt",
        {
            "team": "team number; tries the usual robot addresses",
            "server": "the robot's server",
            "embedded": "be the server (bench), on `listen`:`port`",
            "listen": "address of the embedded server",
            "port": "NetworkTables 4 port",
            "period_ms": "subscription period; 5 halves the latency, but has cut off roboRIOs with very many topics",
            "status": "publish `/AOABridge/<name>/…`",
            "alerts": "group of alerts below `/SmartDashboard`; empty = none",
            "elastic": "dashboard pop-ups on edges",
        },
    ),
    **_under(
        "phone",
        {
            "manufacturer": "identity string; apps match it",
            "model": "identity string; apps match it",
            "version": "identity string; not the release of this program",
            "description": "shown by Android's USB dialog",
            "uri": "shown when no app matches; empty = where the app is found",
            "serial": "empty = derived from the machine's id",
            "heartbeat": "publish `/RoboRoute/Heartbeat` while a phone is alive",
            "topics_period_s": "seconds between topic lists; the known app gives up after 12 s of silence",
        },
    ),
    **_under(
        "devices",
        {
            "max": "phones at once",
            "accept": "which devices are asked: known makers, only `[[device]]` entries, or any",
            "allow": "further `vid:pid` patterns",
            "deny": "`vid:pid`, `serial:…`, `port:…`; wins over everything",
            "reset_stuck": "reset a phone that takes nothing for 15 s, at most once in 5 minutes",
            "simulated": "accept `aoabridge simulate phone`",
        },
    ),
    **_under(
        "device", {"name": "the phone's name", "serial": "its USB serial", "port": "its port, as `1-1.3`", **_ACCESS}
    ),
    **_under("access", _ACCESS),
    **_under(
        "sources.frc",
        {
            **_SOURCE,
            "listen": "`protocol:port` to listen on",
            "connect": "`rio2ds-tcp@host:port` to read",
            "replay": "a capture file to play instead",
            "replay_speed": "how fast; 0 = as fast as possible",
            "replay_loop": "begin again at its end",
            "text": "what text that is not UTF-8 becomes",
            "month_base": "number of January in date tags",
            "rumble_order": "which rumble comes first",
            "stale_ms.fms": "silence of the field until stale",
            "stale_ms.robot": "silence of the robot until stale",
            "max_rate": "packets per second and port that are decoded",
            "max_teams": "teams that are kept apart",
            "write_fms_info": "publish `/FMSInfo` while nobody else does",
            "write_driver_station": "publish `/DriverStation` while nobody else does",
            "info_from": "which direction these come from",
        },
    ),
    **_under(
        "sources.j519",
        {
            **_SOURCE,
            "host": "the robot to start and follow; empty = passive",
            "port": "UDP port",
            "generation": "packet generation",
            "byte_order": "`auto` finds out, on passive sources only",
            "version": 'protocol version to start with; "query" asks',
            "request_limits": "ask for the limit tables",
            "axes": "axes of the robot",
            "stale_ms": "silence until stale",
        },
    ),
    **_under(
        "sources.teleop",
        {
            **_SOURCE,
            "port": "uplink port; 0 = the usual one",
            "vehicle_ports": "uplink ports of single vehicles",
            "ctrl_port": "port of control frames; 0 = off",
            "trigger_port": "port of triggers; 0 = off",
            "downlink_ports": "ports of commands to vehicles",
            "vehicles": "ids that are known",
            "vehicle_names": "id in hex -> name in topics",
            "forward_ui": "`host:port` that gets a copy of uplinks",
            "forward_panosim": "`host:port` that gets a copy of uplinks",
            "stale_ms.uplink": "silence of uplinks until stale",
            "stale_ms.downlink": "silence of downlinks until stale",
            "stale_ms.ctrl": "silence of control frames until stale",
            "scale": "factors of the physical topics",
            "signed_position": "positions are signed",
            "downlink_relay": "`host:port` that gets received commands; empty = nothing is ever passed on",
        },
    ),
    **_under(
        "web",
        {
            "enabled": "serve the status page",
            "port": "its port; 5800 to 5810 pass the field network",
            "bind": "its address; `127.0.0.1` = this machine only",
            "allow_from": "who may see it; `private` = loopback and private networks",
            "hosts": "further names under which it may be asked",
            "control": "reserved: the page only reads; needs `token_file`",
            "token_file": "reserved: file with the token for `control`",
        },
    ),
}
