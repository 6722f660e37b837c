"""A host transfer as the emulated device sees it; results are kernel status numbers."""

__all__ = ["BABBLE", "CANCELLED", "HALT", "PENDING", "PROTOCOL_ERROR", "SHUTDOWN", "STALL", "Transfer"]

PENDING = None  # the device NAKs: no result yet
STALL = HALT = -32
PROTOCOL_ERROR = -71
BABBLE = -75
SHUTDOWN = -108
CANCELLED = -2


class Transfer:
    """One IN, OUT or control transfer; `status` stays None while the device NAKs.

    OUT: `data` is what the host sends, `moved` what the device took. IN: `buffer` is what the device gave.
    """

    __slots__ = ("_on_done", "buffer", "data", "endpoint", "length", "limit", "moved", "status", "zero_packet")

    def __init__(self, endpoint, *, data=b"", length=0, zero_packet=False, on_done=None):
        self.endpoint = endpoint
        self.data = data
        self.length = length
        self.zero_packet = zero_packet
        self.buffer = bytearray()
        self.moved = 0
        self.limit = None
        self.status = PENDING
        self._on_done = on_done

    @property
    def done(self):
        return self.status is not PENDING

    def finish(self, status):
        if self.done:
            return
        self.status = status
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            on_done(self)
