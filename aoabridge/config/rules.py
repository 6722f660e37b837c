"""What no single key can tell: keys that exclude, need or contradict each other."""

import ipaddress
import socket
from collections.abc import Callable, Iterator

import msgspec

from aoabridge.config.kinds import host_port
from aoabridge.config.locate import KeyPath
from aoabridge.config.sections import Config, FrcSettings, J519Settings, TeleopSettings
from aoabridge.sources.settings import DEFAULT_UPLINK_PORT

__all__ = ["Violation", "is_own_address", "violations"]


class Violation(msgspec.Struct, frozen=True):
    """One broken rule, shown at the first of ``keys``; ``missing`` = it would be mended by a key that is not there."""

    keys: tuple[KeyPath, ...]
    message: str
    hint: str | None = None
    missing: bool = False


def is_own_address(host: str) -> bool:
    """True if datagrams to this host would arrive at this machine; names other than localhost are not resolved."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


def violations(config: Config, several: frozenset[str], own: Callable[[str], bool]) -> Iterator[Violation]:
    """Every broken rule. ``several`` names the kinds of sources written as [[sources.kind]]."""
    yield from _targets(config)
    yield from _web(config)
    yield from _devices(config)
    for kind in ("frc", "j519", "teleop"):
        found: tuple[FrcSettings | J519Settings | TeleopSettings, ...] = getattr(config.sources, kind)
        paths: list[KeyPath] = [
            ("sources", kind, index) if kind in several else ("sources", kind) for index in range(len(found))
        ]
        yield from _names(found, paths)
        for settings, path in zip(found, paths, strict=True):
            yield from _bind(settings, path)
            if isinstance(settings, FrcSettings):
                yield from _frc(settings, path)
            elif isinstance(settings, J519Settings):
                yield from _j519(settings, path)
            else:
                yield from _teleop(settings, path, own)


def _targets(config: Config) -> Iterator[Violation]:
    nt = config.nt
    chosen = [
        name for name, used in (("team", nt.team is not None), ("server", nt.server), ("embedded", nt.embedded)) if used
    ]
    if len(chosen) > 1:
        keys: tuple[KeyPath, ...] = tuple(("nt", name) for name in reversed(chosen))
        others = " and ".join(f"nt.{name}" for name in chosen[:-1])
        yield Violation(keys, f"excludes {others}", "keep exactly one of nt.team, nt.server, nt.embedded")


def _web(config: Config) -> Iterator[Violation]:
    if config.web.control and not config.web.token_file:
        yield Violation((("web", "control"), ("web", "token_file")), "needs web.token_file", missing=True)


def _devices(config: Config) -> Iterator[Violation]:
    names: set[str] = set()
    keys: set[tuple[str, str]] = set()
    for index, device in enumerate(config.device):
        path: KeyPath = ("device", index)
        if device.name in names:
            yield Violation(((*path, "name"),), f'"{device.name}" names two devices')
        names.add(device.name)
        if not device.serial and not device.port:
            yield Violation((path, (*path, "serial"), (*path, "port")), "needs serial or port", missing=True)
        elif (device.serial, device.port) in keys:
            shown_at = "serial" if device.serial else "port"
            yield Violation(((*path, shown_at),), "stands for a phone that is named already")
        keys.add((device.serial, device.port))


def _names(found: tuple[FrcSettings | J519Settings | TeleopSettings, ...], paths: list[KeyPath]) -> Iterator[Violation]:
    names: set[str] = set()
    for settings, path in zip(found, paths, strict=True):
        if settings.name in names:
            yield Violation(((*path, "name"), path), f'"{settings.name}" names two sources', "give each its own name")
        names.add(settings.name)


def _bind(settings: FrcSettings | J519Settings | TeleopSettings, path: KeyPath) -> Iterator[Violation]:
    if not ipaddress.ip_address(settings.bind).is_loopback and not settings.allow_from:
        yield Violation(
            ((*path, "bind"), (*path, "allow_from")),
            "an address other than loopback needs allow_from",
            'name the senders, e.g. allow_from = ["10.64.58.0/24"]',
            missing=True,
        )


def _frc(settings: FrcSettings, path: KeyPath) -> Iterator[Violation]:
    taken: set[tuple[str, str]] = set()
    for index, endpoint in enumerate(settings.listen):
        protocol, _, port = endpoint.partition(":")
        socket_of = (protocol.rpartition("-")[2], str(int(port)))
        if socket_of in taken:
            yield Violation(((*path, "listen", index), (*path, "listen")), f"port {port} stands here twice")
        taken.add(socket_of)


def _j519(settings: J519Settings, path: KeyPath) -> Iterator[Violation]:
    if settings.host and settings.byte_order == "auto":
        yield Violation(
            ((*path, "byte_order"), (*path, "host")),
            '"auto" is for passive listening only',
            "what we send must not be guessed: choose big or little",
        )
    if settings.generation == "driver" and settings.version not in (3, 4, "query"):
        yield Violation(
            ((*path, "version"), (*path, "generation")), f'{settings.version} is not 3, 4 or "query"', missing=True
        )


def _teleop(settings: TeleopSettings, path: KeyPath, own: Callable[[str], bool]) -> Iterator[Violation]:
    ports: dict[int, str] = {settings.port or DEFAULT_UPLINK_PORT: "port"}
    lists = {
        "vehicle_ports": settings.vehicle_ports,
        "ctrl_port": (settings.ctrl_port,) if settings.ctrl_port else (),
        "trigger_port": (settings.trigger_port,) if settings.trigger_port else (),
        "downlink_ports": settings.downlink_ports,
    }
    for name, listed in lists.items():
        for port in listed:
            if port in ports:
                keys = ((*path, name), (*path, ports[port]))
                yield Violation(keys, f"port {port} is taken by {ports[port]}")
            ports.setdefault(port, name)
    for name in ("forward_ui", "forward_panosim", "downlink_relay"):
        target = host_port(getattr(settings, name))
        if target is not None and target[1] in ports and own(target[0]):
            yield Violation(((*path, name),), f"port {target[1]} of this machine is our own: an endless loop")
    if settings.downlink_relay and not settings.downlink_ports:
        yield Violation(((*path, "downlink_relay"), (*path, "downlink_ports")), "needs downlink_ports", missing=True)
    named = list(settings.vehicle_names.values())
    if len(set(named)) < len(named):
        yield Violation(((*path, "vehicle_names"),), "two vehicles have one name")
