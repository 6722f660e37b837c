"""Records what a child Python process sends: a ``sitecustomize`` that notes every send of an internet socket."""

import json
from pathlib import Path
from typing import NamedTuple

SITE = """
import json, os, socket

_out = open(os.environ["SENT_DATAGRAMS"] + "." + str(os.getpid()), "a", buffering=1)


def _note(sock, data, target):
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        try:
            target = target or sock.getpeername()
        except OSError:
            target = ("", 0)
        kind = "udp" if sock.type == socket.SOCK_DGRAM else "tcp"
        _out.write(json.dumps([kind, target[1], bytes(data).hex()]) + "\\n")


def _wrap(name):
    plain = getattr(socket.socket, name)

    def noted(self, data, *rest):
        _note(self, data, rest[-1] if name == "sendto" else None)
        return plain(self, data, *rest)

    setattr(socket.socket, name, noted)


for _name in ("send", "sendall", "sendto"):
    _wrap(_name)


def _refused(self, *_):
    raise RuntimeError("sendmsg is not recorded")


socket.socket.sendmsg = _refused
"""


class Sent(NamedTuple):
    """One send: ``udp`` or ``tcp``, the target's port, the octets."""

    kind: str
    port: int
    data: bytes


class SentDatagrams:
    """The record of one run; ``environment`` makes a child process keep it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "sent"
        site = directory / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(SITE)
        self.environment = {"PYTHONPATH": str(site), "SENT_DATAGRAMS": str(self._path)}

    def take(self, pid: int) -> list[Sent]:
        """What this process has sent so far."""
        found = []
        for line in self._path.with_name(f"sent.{pid}").read_text().splitlines():
            kind, port, data = json.loads(line)
            found.append(Sent(kind, port, bytes.fromhex(data)))
        return found
