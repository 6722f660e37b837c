"""Endpoints of the driver station source: from its settings, or for a capture the known port of every protocol."""

from typing import Any

from aoabridge.codecs.host_port import split_host_port
from aoabridge.codecs.protocols import PROTOCOLS, CaptureRule
from aoabridge.sources.base import Endpoint
from aoabridge.sources.settings import FrcSettings

__all__ = ["ANYWHERE", "REPLAY_RULES", "endpoints_of", "protocol_of"]

ANYWHERE = ("0.0.0.0/0", "::/0")  # senders in a capture are not on the network
REPLAY_RULES: dict[str, CaptureRule] = {
    name: row.capture for name, row in PROTOCOLS.items() if row.module == "frc" and row.capture is not None
}


def protocol_of(key: str) -> str:
    """Protocol id of an endpoint's key."""
    return key.replace("@", ":").partition(":")[0]


def endpoints_of(settings: FrcSettings) -> list[Endpoint]:
    """Every endpoint; those of a replay are never opened."""
    if settings.replay:
        listen = tuple(f"{protocol}:{port}" for protocol, rule in REPLAY_RULES.items() for port in rule.ports)
        return [_listen(key, settings) for key in listen]
    return [_listen(key, settings) for key in settings.listen] + [_connect(key) for key in settings.connect]


def _listen(key: str, settings: FrcSettings) -> Endpoint:
    kind: Any = "tcp" if protocol_of(key).endswith("-tcp") else "udp"
    return Endpoint(key, kind, settings.bind, int(key.rpartition(":")[2]), settings.allow_from)


def _connect(key: str) -> Endpoint:
    host, port = split_host_port(key.partition("@")[2])
    return Endpoint(key, "tcp", "", port, direction="connect", host=host)
