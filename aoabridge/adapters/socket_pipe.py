"""A phone link over a stream socket: what ``simulate phone`` is connected by instead of USB."""

import select
import socket
import time

from aoabridge.errors import UsbError
from aoabridge.phone.aoa import IN_READ_BYTES

__all__ = ["SocketPipe"]

PACKET_SIZE = 512  # of a high-speed bulk endpoint; a stream has none, but the padding rule wants one


class SocketPipe:
    """Blocking reads and writes with timeouts, as of a UsbPipe; a peer that has gone is an unplugged phone.

    ``read`` belongs to one thread, ``write`` to one, ``close`` to whoever comes after both.
    """

    packet_size = PACKET_SIZE

    def __init__(self, connection: socket.socket, pending: bytes = b"", name: str = "simulated") -> None:
        connection.setblocking(False)
        self._socket = connection
        self._pending = pending
        self._name = name
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(connection, select.POLLIN)
        self._writable.register(connection, select.POLLOUT)

    def read(self, timeout_ms: int) -> bytes | None:
        """What the peer sent, None if nothing came in time; UsbError NO_DEVICE once it is gone."""
        if self._pending:
            chunk, self._pending = self._pending[:IN_READ_BYTES], self._pending[IN_READ_BYTES:]
            return chunk
        if not self._readable.poll(timeout_ms):
            return None
        try:
            chunk = self._socket.recv(IN_READ_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            raise self._gone("read") from error
        if not chunk:
            raise self._gone("read")
        return chunk

    def write(self, data: bytes, timeout_ms: int) -> int:
        """How many bytes the peer's side took in time; UsbError NO_DEVICE once it is gone."""
        deadline = time.monotonic() + timeout_ms / 1000
        sent = 0
        while sent < len(data):
            left_ms = max(int((deadline - time.monotonic()) * 1000), 0)
            if not self._writable.poll(left_ms):
                break
            try:
                sent += self._socket.send(data[sent:])
            except BlockingIOError:
                if left_ms == 0:
                    break
            except OSError as error:
                raise self._gone("write") from error
        return sent

    def clear_halt_in(self) -> None:
        """Nothing to clear: a stream does not halt."""

    def clear_halt_out(self) -> None:
        """Nothing to clear: a stream does not halt."""

    def close(self) -> None:
        """End the link; the peer reads the end of the stream."""
        self._socket.close()

    def _gone(self, step: str) -> UsbError:
        return UsbError("the simulated phone is gone", errno=19, kind="NO_DEVICE", step=step, port=self._name)
