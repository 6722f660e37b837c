"""Where a server may be, whether this machine has an address to reach it from, whether our own one listens."""

import array
import fcntl
import ipaddress
import socket
import struct
import time

import msgspec

from aoabridge.codecs.host_port import join_host_port, split_host_port

__all__ = [
    "DEFAULT_PORT",
    "NtTarget",
    "has_address",
    "prove_port",
    "require_free_port",
    "team_candidates",
]

DEFAULT_PORT = 5810
SERVER_UP_S = 1.0
_SIOCGIFCONF = 0x8912
_IFREQ_BYTES = 40  # struct ifreq on 64-bit Linux: 16 bytes name, then a sockaddr
_MAX_ADDRESSES = 256


class NtTarget(msgspec.Struct, frozen=True):
    """Where the server is: a team number or addresses (``host``, ``host:port``); neither = nowhere yet."""

    team: int | None = None
    servers: tuple[str, ...] = ()
    port: int = DEFAULT_PORT

    def servers_and_ports(self) -> list[tuple[str, int]]:
        """Return the addresses as pairs; ValueError for one that is none."""
        return [split_host_port(server, self.port) for server in self.servers]

    def addresses(self) -> tuple[str, ...]:
        """Return every address that is tried, for display."""
        if self.team is not None:
            return team_candidates(self.team, self.port)
        return tuple(join_host_port(*server) for server in self.servers_and_ports())


def team_candidates(team: int, port: int = DEFAULT_PORT) -> tuple[str, ...]:
    """Return the addresses that ntcore tries at once for a team number, for display."""
    name = f"roboRIO-{team}-FRC"
    hosts = (f"10.{team // 100}.{team % 100}.2", "172.22.11.2", name, f"{name}.local", f"{name}.lan")
    return tuple(f"{host}:{port}" for host in (*hosts, f"{name}.frc-field.local"))


def has_address() -> bool:
    """True if any IPv4 address of this machine lies outside 127.0.0.0/8.

    Without one the resolver of ntcore's client fails for every name, 127.0.0.1 included.
    """
    return any(not address.is_loopback for address in _addresses())


def prove_port(host: str, port: int) -> None:
    """Connect once to a server that was just started: ntcore reports a port that it could not bind to nobody."""
    deadline = time.monotonic() + SERVER_UP_S
    while True:
        try:
            socket.create_connection((host, port), timeout=SERVER_UP_S).close()
        except OSError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.005)
        else:
            return


def require_free_port(host: str, port: int) -> None:
    """Raise OSError if another program listens there; connecting alone could reach that one."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


def _addresses() -> list[ipaddress.IPv4Address]:
    buffer = array.array("B", bytes(_IFREQ_BYTES * _MAX_ADDRESSES))
    start, size_bytes = buffer.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answer = fcntl.ioctl(probe, _SIOCGIFCONF, struct.pack("iL", size_bytes, start))
    used_bytes: int = struct.unpack("iL", answer)[0]
    # In each ifreq: 16 bytes of name, family, port, then the address.
    return [
        ipaddress.IPv4Address(bytes(buffer[offset + 20 : offset + 24])) for offset in range(0, used_bytes, _IFREQ_BYTES)
    ]
