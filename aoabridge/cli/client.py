"""The command line's end of the control socket: one JSON line out, JSON lines (or a link's raw bytes) back."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aoabridge.cli.exits import CommandError, Exit

__all__ = ["Daemon", "connect", "socket_paths"]

SYSTEM_SOCKET = Path("/run/aoabridge/control.sock")
ANSWER_S = 5.0  # a daemon whose loop does not turn for so long is as good as down
MAX_LINE_BYTES = 1 << 24  # far above any snapshot; protects a client from a wrong peer
_STATUS_OF = {
    "forbidden": Exit.PERMISSION,
    "bad-request": Exit.USAGE,
    "not-found": Exit.NEGATIVE,
    "cannot-create": Exit.CANNOT_CREATE,
}


def socket_paths(given: str | None) -> list[Path]:
    """Where a daemon may listen, first choice first; a path that was given is the only choice."""
    if given:
        return [Path(given)]
    if named := os.environ.get("AOABRIDGE_SOCKET"):
        return [Path(named)]
    paths = [SYSTEM_SOCKET]
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        paths.append(Path(runtime) / "aoabridge" / "control.sock")
    return paths


def connect(given: str | None, timeout_s: float = ANSWER_S) -> "Daemon":
    """A connection to the first daemon that answers; CommandError 2 if there is none, 77 without permission."""
    refused: Path | None = None
    paths = socket_paths(given)
    for path in paths:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(path))
        except PermissionError:
            refused = path
        except OSError:
            pass
        else:
            return Daemon(connection)
        connection.close()
    if refused is not None:
        raise CommandError(f"no permission to open {refused}", Exit.PERMISSION, f"sudo chmod 0666 {refused}")
    shown = " or ".join(str(path) for path in paths)
    raise CommandError(f"no daemon answers at {shown}", Exit.NO_DAEMON, "sudo systemctl start aoabridge")


class Daemon:
    """One connection, for one request."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._pending = b""

    def __enter__(self) -> "Daemon":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def request(self, name: str, /, **arguments: object) -> dict[str, Any]:
        """The result of a one-shot request."""
        result = self._open(name, arguments).get("result")
        return result if isinstance(result, dict) else {}

    def stream(self, name: str, /, *, idle_s: float | None = None, **arguments: object) -> Iterator[dict[str, Any]]:
        """The events of a stream until the daemon ends it; TimeoutError after ``idle_s`` without one."""
        self._open(name, arguments)
        self._socket.settimeout(idle_s)
        while (line := self._line()) is not None:
            event = _parsed(line)
            if event.get("ok") is False:  # found out only after the stream had begun
                raise _refusal(event)
            yield event

    def link(self, name: str, /, **arguments: object) -> tuple[socket.socket, bytes]:
        """The socket itself, now carrying raw bytes both ways, and bytes of it that were read already."""
        self._open(name, arguments)
        self._socket.settimeout(None)
        return self._socket, self._pending

    def _open(self, name: str, arguments: dict[str, object]) -> dict[str, Any]:
        request = json.dumps({"request": name, "arguments": arguments})
        try:
            self._socket.sendall(request.encode() + b"\n")
            line = self._line()
        except TimeoutError:
            raise CommandError(
                "the daemon does not answer", Exit.NO_DAEMON, "sudo systemctl restart aoabridge"
            ) from None
        except ConnectionError:
            line = None
        if line is None:
            raise CommandError("the daemon closed the connection", Exit.NO_DAEMON, "aoabridge log")
        answer = _parsed(line)
        if answer.get("ok") is True:
            return answer
        raise _refusal(answer)

    def _line(self) -> bytes | None:
        while b"\n" not in self._pending:
            if len(self._pending) > MAX_LINE_BYTES:
                raise CommandError("the daemon's answer is too long", Exit.INTERNAL)
            try:
                chunk = self._socket.recv(65536)
            except ConnectionError:
                return None
            if not chunk:
                return None
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line


def _refusal(answer: dict[str, Any]) -> CommandError:
    error = answer.get("error")
    error = error if isinstance(error, dict) else {}
    status = _STATUS_OF.get(str(error.get("code")), Exit.NEGATIVE)
    cure = error.get("fix")
    return CommandError(str(error.get("message", "refused")), status, cure if isinstance(cure, str) else None)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CommandError("the peer of the socket is not an aoabridge daemon", Exit.NO_DAEMON)
    return value
