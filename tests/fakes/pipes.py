"""The two bulk endpoints of the accessory function, as Android's two implementations behave.

kernel: an OUT request exists only while the app is inside read(); it completes at a short packet or when it is full.
userspace: OUT is also accepted into a 256 KiB buffer. Phone to host, 4 or 16 requests of 16 KiB wait for the host;
then the app's write blocks.
"""

from collections import deque

from fakes.transfers import BABBLE, CANCELLED, HALT, SHUTDOWN

__all__ = ["InPipe", "OutPipe"]

REQUEST_BYTES = 16384
BUFFER_BYTES = 256 * 1024
REQUESTS = {"kernel": 4, "userspace": 16}


class _Pipe:
    """What both directions share: queued host transfers, halts, the end by unplug."""

    def __init__(self, packet_size, clock):
        self.packet_size = packet_size
        self.clock = clock
        self.pending = deque()
        self.halted = False
        self.halts_left = 0
        self.halts_armed = False
        self.on_first_use = None
        self.used = False
        self.cut = None  # (bytes, callback): unplug in the middle of a transfer

    def halt_events(self, times):
        self.halts_left = float("inf") if times == "always" else times

    def arm_halts(self):
        """From now on the function halts this endpoint, as often as the profile says."""
        self.halts_armed = True
        self._maybe_halt()

    def _maybe_halt(self):
        if self.halts_armed and self.halts_left and not self.halted and self.pending:
            self.halts_left -= 1
            self.halted = True
        if self.halted:
            while self.pending:
                self.pending.popleft().finish(HALT)
        return self.halted

    def clear_halt(self):
        self.halted = False

    def submit(self, transfer):
        self.pending.append(transfer)
        if not self._maybe_halt():
            self.pump()

    def cancel(self, transfer):
        """The host gives up waiting; what moved so far stays moved."""
        if transfer in self.pending:
            self.pending.remove(transfer)
            self._cancelled(transfer)
            transfer.finish(CANCELLED)

    def shut_down(self):
        while self.pending:
            self.pending.popleft().finish(SHUTDOWN)

    def _note_use(self):
        if not self.used:
            self.used = True
            if self.on_first_use is not None:
                self.on_first_use()


class OutPipe(_Pipe):
    """Host to phone."""

    def __init__(self, packet_size, clock, data_path, on_accepted):
        super().__init__(packet_size, clock)
        self.userspace = data_path == "userspace"
        self.dead = False
        self._on_accepted = on_accepted
        self._reader = None  # (size, callback) of the app inside read()
        self._request = bytearray()
        self._capacity = 0
        self._stream = bytearray()
        self._last_request = b""
        self._nak_until = 0.0
        self._split = None
        self._stop = None
        self.accepted_bytes = 0
        self.delivered_bytes = 0
        self.mid_line = False

    # the app's side

    def read(self, size, callback):
        """The app enters read(): `callback(bytes)` once data is there."""
        self._reader = (size, callback)
        if self.userspace:
            self._serve_stream()
        else:
            self._capacity = min(REQUEST_BYTES, -(-size // self.packet_size) * self.packet_size)
        self.pump()

    def leave_read(self):
        """The app's read is gone, and with it what its request held."""
        self._reader = None
        self.delivered_bytes += len(self._request)
        self._request.clear()
        self._capacity = 0

    def close(self):
        """The app's descriptor is gone: nothing buffered survives."""
        self.leave_read()
        self.delivered_bytes += len(self._stream)
        self._stream.clear()

    @property
    def reading(self):
        return self._reader is not None

    @property
    def last_request(self):
        return self._last_request

    # scripted misbehaviour

    def split_transfers(self, nak_s, sequence):
        """Each transfer accepts the next number of `sequence` (an iterator) of bytes, then NAKs for `nak_s`."""
        self._split = (nak_s, sequence)

    def stop_splitting(self):
        self._split = None

    def stop_at(self, count, min_length, on_reached):
        """The next transfer of at least `min_length` bytes is accepted up to `count`, then NAKed until `resume`."""
        self._stop = (count, min_length, on_reached)

    def nak(self, seconds):
        self._nak_until = self.clock.now() + seconds
        if seconds != float("inf"):
            self.clock.call_at(self._nak_until + 1e-6, self.pump)

    def resume(self):
        self._nak_until = 0.0
        self.pump()

    # data

    def pump(self):
        """Moves what can move now."""
        while self.pending and not self.dead and not self.halted and self.clock.now() >= self._nak_until:
            if not self.userspace and self._reader is None:
                return
            transfer = self.pending[0]
            if transfer.moved == 0 and transfer.limit is None and not self._begin(transfer):
                return
            room = self._room()
            whole = len(transfer.data) - transfer.moved
            wanted = whole if transfer.limit is None else min(whole, max(transfer.limit - transfer.moved, 0))
            count = min(room, wanted)
            if count == 0 and whole:
                return
            self._take(transfer, count)
            if self._interrupted(transfer):
                return
            if transfer.moved < len(transfer.data):
                if self._request_full():
                    self._complete_request()
                    continue
                return
            self._finish_front()

    def _begin(self, transfer):
        """First contact with a transfer; False if it has to wait (a split at zero)."""
        if self._stop is not None and len(transfer.data) >= self._stop[1]:
            transfer.limit = min(self._stop[0], len(transfer.data))
            return True
        if self._split is None:
            return True
        nak_s, sequence = self._split
        transfer.limit = next(sequence, None)
        if transfer.limit is None or transfer.limit >= len(transfer.data):
            transfer.limit = len(transfer.data)
            return True
        if transfer.limit == 0:
            transfer.limit = len(transfer.data)
            self.nak(nak_s)
            return False
        return True

    def _take(self, transfer, count):
        data = transfer.data[transfer.moved : transfer.moved + count]
        transfer.moved += count
        self._request += data
        self.accepted_bytes += count
        if data:
            self.mid_line = not data.endswith(b"\n")
            self._on_accepted(data)
            self._note_use()

    def _interrupted(self, transfer):
        """True if a scripted event stops the transfer here."""
        if self.cut is not None and transfer.moved >= self.cut[0]:
            callback, self.cut = self.cut[1], None
            callback()
            return True
        if self._stop is not None and transfer.limit is not None and transfer.moved >= self._stop[0]:
            on_reached, self._stop = self._stop[2], None
            self.nak(float("inf"))
            on_reached()
            return True
        if transfer.limit is not None and transfer.limit <= transfer.moved < len(transfer.data):
            transfer.limit = len(transfer.data)
            self.nak(self._split[0] if self._split else 0.0)
            return True
        return False

    def _room(self):
        if self.userspace:
            return min(REQUEST_BYTES - len(self._request), BUFFER_BYTES - len(self._stream) - len(self._request))
        return self._capacity - len(self._request) if self._reader else 0

    def _request_full(self):
        capacity = REQUEST_BYTES if self.userspace else self._capacity
        return capacity > 0 and len(self._request) >= capacity

    def _finish_front(self):
        transfer = self.pending.popleft()
        short = len(transfer.data) % self.packet_size or not transfer.data or transfer.zero_packet
        full = self._request_full()
        if (short or full) and self._request:  # a ZLP without data re-queues the request
            self._complete_request()
        transfer.finish(0)

    def _cancelled(self, transfer):
        if transfer.moved % self.packet_size and self._request:
            self._complete_request()  # the last packet that came was a short one

    def _complete_request(self):
        data = bytes(self._request)
        self._request.clear()
        self._last_request = data
        if self.userspace:
            self._stream += data
            self._serve_stream()
            return
        (size, callback), self._reader, self._capacity = self._reader, None, 0
        self.delivered_bytes += len(data)
        callback(data[:size])

    def _serve_stream(self):
        if self._reader is None or not self._stream:
            return
        (size, callback), self._reader = self._reader, None
        data = bytes(self._stream[:size])
        del self._stream[:size]
        self.delivered_bytes += len(data)
        callback(data)


class InPipe(_Pipe):
    """Phone to host: requests of the app's writes, given out packet by packet."""

    def __init__(self, packet_size, clock, data_path, zero_packets=True):
        super().__init__(packet_size, clock)
        self.slots = REQUESTS[data_path]
        self.zero_packets = zero_packets
        self.babbled = 0
        self.block_s = 0.0
        self._requests = deque()  # [data, offset, zero_packet_follows]
        self._writes = deque()  # [pieces, callback, since, ZLP after multiples]

    @property
    def idle(self):
        return not self._requests and not self._writes

    def write(self, data, callback=None, zero_packets=None):
        """The app writes: it is done (`callback()`) once the last piece found a free request."""
        zero_packets = self.zero_packets if zero_packets is None else zero_packets
        pieces = deque(data[at : at + REQUEST_BYTES] for at in range(0, len(data), REQUEST_BYTES))
        self._writes.append([pieces, callback, self.clock.now(), zero_packets])
        self._admit()
        self.pump()

    def queue(self, data):
        """Bytes that waited on the phone before the host came; no request limit."""
        self._requests.append([data, 0, self.zero_packets and len(data) % self.packet_size == 0])
        self.pump()

    def queue_zlps(self, count):
        for _ in range(count):
            self._requests.append([b"", 0, True])
        self.pump()

    def clear(self):
        self._requests.clear()
        self._writes.clear()

    def drop_writes(self):
        """The app died: writes that found no request are gone, queued requests survive."""
        self._writes.clear()

    def pump(self):
        while self.pending and self._requests and not self.halted:
            transfer = self.pending[0]
            if self.cut is not None and len(transfer.buffer) >= self.cut[0]:
                callback, self.cut = self.cut[1], None
                callback()
                return
            status = self.fill(transfer.buffer, transfer.length)
            if status is None:
                return
            self.pending.popleft()
            self._note_use()
            transfer.finish(status)

    def fill(self, buffer, length):
        """Moves whole packets into one IN request: None = pending, 0 = complete, BABBLE = a packet did not fit."""
        while self._requests:
            request = self._requests[0]
            data, offset, _ = request
            count = min(len(data) - offset, (length - len(buffer)) // self.packet_size * self.packet_size)
            if self.cut is not None:
                count = min(count, self.cut[0] - len(buffer))
            buffer += data[offset : offset + count]
            request[1] += count
            left = len(data) - request[1]
            if len(buffer) == length and (left or request[2]):
                return 0
            if left:
                return self._next_packet_does_not_fit(request, buffer, length, left)
            self._requests.popleft()
            self._admit()
            if request[2] or len(data) % self.packet_size or len(buffer) == length:
                return 0
        return None

    def _next_packet_does_not_fit(self, request, buffer, length, left):
        if self.cut is not None and len(buffer) >= self.cut[0]:
            callback, self.cut = self.cut[1], None
            callback()
            return None
        packet = min(left, self.packet_size)
        room = length - len(buffer)
        if left <= room:  # a short last packet
            buffer += request[0][request[1] :]
            self._requests.popleft()
            self._admit()
            return 0
        request[1] += packet
        self.babbled += 1
        if request[1] >= len(request[0]):
            self._requests.popleft()
            self._admit()
        buffer += bytes(room)
        return BABBLE

    def take(self, count):
        """At most `count` queued bytes whatever the packets: for injected results that moved bytes."""
        taken = bytearray()
        while self._requests and len(taken) < count:
            request = self._requests[0]
            part = request[0][request[1] : request[1] + count - len(taken)]
            taken += part
            request[1] += len(part)
            if request[1] >= len(request[0]):
                self._requests.popleft()
                self._admit()
        return bytes(taken)

    def _cancelled(self, transfer):
        """Nothing: the packets that moved are the host's."""

    def _admit(self):
        while self._writes and len(self._requests) < self.slots:
            pieces, callback, since, zero_packets = self._writes[0]
            piece = pieces.popleft() if pieces else b""
            last = not pieces
            self._requests.append([piece, 0, last and zero_packets and len(piece) % self.packet_size == 0])
            if last:
                self._writes.popleft()
                self.block_s = max(self.block_s, self.clock.now() - since)
                if callback is not None:
                    callback()
