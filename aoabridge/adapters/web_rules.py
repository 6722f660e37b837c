"""Who may see the status page, and what every answer says to the browser; no sockets, no protocol."""

import http
import ipaddress
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = ["FOREIGN_PEER", "READ_ONLY", "Refusal", "WebRules", "security_headers"]

PRIVATE: Final = (
    "127.0.0.0/8", "169.254.0.0/16", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
    "::1/128", "fe80::/10", "fc00::/7",
)  # fmt: skip
DEFAULT_PORT: Final = 80  # of the http scheme; a Host without a port means it
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9._-]{1,253}))(?::([0-9]{1,5}))?", re.ASCII)


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: http.HTTPStatus
    text: str


FOREIGN_PEER: Final = Refusal(http.HTTPStatus.FORBIDDEN, "this address may not see the page: web.allow_from")
FOREIGN_PAGE: Final = Refusal(http.HTTPStatus.FORBIDDEN, "a foreign page may not connect")
READ_ONLY: Final = Refusal(http.HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD")
ONE_HOST: Final = Refusal(http.HTTPStatus.BAD_REQUEST, "exactly one Host header is needed")
OTHER_NAME: Final = Refusal(http.HTTPStatus.MISDIRECTED_REQUEST, "not a name of this machine: web.hosts")


class WebRules:
    """The rules in force; ``change`` replaces them while the server runs.

    ``allow_from`` holds networks, or "private" for loopback, link-local and private ones. ``names`` are the host names
    under which this machine is known: a name that was rebound to our address is none of them.
    """

    def __init__(self, allow_from: Sequence[str] = ("private",), names: Sequence[str] = ()) -> None:
        self.change(allow_from, names)

    def change(self, allow_from: Sequence[str], names: Sequence[str]) -> None:
        """Take new rules for every request from now on."""
        texts = [text for entry in allow_from for text in (PRIVATE if entry == "private" else (entry,))]
        self._networks = [ipaddress.ip_network(text, strict=False) for text in texts]
        self._names = frozenset(name.lower() for name in ("localhost", *names))

    def allows_peer(self, address: str) -> bool:
        """True if that address may ask at all; an IPv6 zone does not matter."""
        try:
            peer = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped is not None:
            peer = peer.ipv4_mapped
        return any(peer in network for network in self._networks)

    def refusal(self, peer: str, method: str, hosts: Sequence[str], port: int) -> Refusal | None:
        """None if the request is to be answered; ``hosts`` are all its Host headers, ``port`` is ours."""
        if not self.allows_peer(peer):
            return FOREIGN_PEER
        if method not in ("GET", "HEAD"):
            return READ_ONLY
        if len(hosts) != 1:
            return ONE_HOST
        return None if self._is_ours(hosts[0], port) else OTHER_NAME

    def websocket_refusal(self, origins: Sequence[str], host: str) -> Refusal | None:
        """None if the page that wants a websocket was served under the accepted ``host``, or is no page at all."""
        return FOREIGN_PAGE if origins and list(origins) != [f"http://{host}"] else None

    def _is_ours(self, host: str, port: int) -> bool:
        name, named_port = split_host(host)
        if named_port != port:
            return False
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def split_host(host: str) -> tuple[str, int]:
    """Name (lower case, without brackets) and port of a Host header; ("", 0) for anything else."""
    match = _HOST.fullmatch(host.lower())
    if match is None:
        return "", 0
    return match[1] or match[2], DEFAULT_PORT if match[3] is None else int(match[3])


def security_headers(host: str) -> dict[str, str]:
    """What every answer carries; ``host`` is the request's Host, whose websocket the page may use."""
    name, port = split_host(host)
    shown = f"[{name}]" if ":" in name else name
    websocket = f" ws://{shown}:{port}" if name else ""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self'{websocket}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
    return {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
