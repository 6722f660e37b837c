"""Scripted traffic of the app: jobs that write lines, paced by the clock and by the phone's own back pressure."""

from collections import deque

__all__ = ["Traffic"]

FLOOD_PIECE = 16384
PUTS_PER_S = 200  # below the bridge's limit of 500, so that nothing is refused for its rate


class Traffic:
    """The traffic half of the app (a mix-in: `write`, `clock`, `book`, `function` are the app's)."""

    def __init__(self):
        self._jobs = set()
        self._mid_line = False
        self._waiting = []

    @property
    def busy(self):
        """True while a job runs or bytes wait for the host."""
        return bool(self._jobs) or (self.function is not None and not self.function.in_.idle)

    def stop_jobs(self):
        self._jobs.clear()
        self._mid_line = False
        self._waiting.clear()

    def say(self, line):
        """Writes a whole line, but never into the middle of one that a job has begun."""
        if self._mid_line:
            self._waiting.append(line)
        else:
            self.write(line)

    def _wrote(self, data):
        self._mid_line = not data.endswith(b"\n")
        while self._waiting and not self._mid_line:
            self.write(self._waiting.pop(0))

    def _play(self, steps):
        """Writes (delay, data, sequences) steps one after the other; each waits until the one before was taken."""
        job = object()
        self._jobs.add(job)
        steps = iter(steps)

        def advance():
            if job not in self._jobs:
                return
            step = next(steps, None)
            if step is None:
                self._jobs.discard(job)
                return
            delay, data, zero_packets = step
            self.clock.call_later(delay, lambda: put(data, zero_packets))

        def put(data, zero_packets):
            if job not in self._jobs or self.function is None:
                self._jobs.discard(job)
                return
            if self.open:
                self.function.in_.write(data, advance, zero_packets)
                self._wrote(data)
            else:
                self._jobs.discard(job)

        advance()

    def app_lines(self, count=1, bytes=0):  # noqa: A002 - the name of the case format
        self._play(self._paced_puts(count, bytes, 0.0 if count <= PUTS_PER_S * 4 else 1 / PUTS_PER_S))

    def _paced_puts(self, count, length, gap_s):
        for index in range(count):
            yield (gap_s if index else 0.0, self._sent(self.book.line(length)), None)

    def _sent(self, data):
        self._mark_new()
        return data

    def _mark_new(self):
        last = len(self.book.sent)
        first = last
        while first and self.book.sent[first - 1][1] is None:
            first -= 1
        self.book.mark_sent(first, last)

    def app_bytes(self, sizes, repeat=1, gap_s=0.0, zlp=None):
        data = self.book.exact_bytes(sum(sizes) * repeat)
        self._mark_new()
        pieces, at = deque(), 0
        for size in list(sizes) * repeat:
            pieces.append(data[at : at + size])
            at += size
        zero_packets = None if zlp is None else zlp not in (False, "never")
        self._play((gap_s, piece, zero_packets) for piece in pieces)

    def app_chunks(self, seed, lines, alphabet="ascii"):
        pieces = self.book.chunks(seed, lines, alphabet)
        self._mark_new()
        self._play((0.0, piece, None) for piece in pieces)

    def app_flood(self, bytes):  # noqa: A002 - the name of the case format
        self._play(self._flood(bytes))

    def _flood(self, total):
        piece = b"x" * FLOOD_PIECE
        for _ in range(total // FLOOD_PIECE):
            yield (0.0, piece, None)
        yield (0.0, b"x" * (total % FLOOD_PIECE) + b"\n", None)

    def app_stream(self, bytes_per_s, seconds=10.0):
        rate = min(PUTS_PER_S, max(1.0, bytes_per_s / 60))
        length = int(bytes_per_s / rate)
        self._play(self._paced_puts(int(rate * seconds), length, 1 / rate))

    def app_zlps(self, count):
        if self.function is not None:
            self.function.in_.queue_zlps(count)
