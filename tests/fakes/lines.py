"""The test lines of the rig: values with a sequence number that can be checked at the far end."""

import json
import random

__all__ = ["InboundBook", "bench_value", "check_bench_value", "put_line", "split_stream"]

ALPHABETS = {
    "ascii": 'abcdefghijklmnopqrstuvwxyz 0123456789"\\/{}[]:,',
    "unicode": 'aé漢🤖ß\u2028Ω\x7f"\\ñ語😀 .:,{}',
}


def bench_value(sequence, time_s, length):
    """A string of `length` characters (or a little more) with number, publish time and a checkable filling."""
    head = f"{sequence};{time_s:.6f};"
    return head + _filling(sequence) * (length - len(head))


def check_bench_value(value):
    """(sequence, publish time) of a bench value; None if it is damaged."""
    if not isinstance(value, str):
        return None
    try:
        sequence, time_s, filling = value.split(";")
        number = int(sequence)
        ok = filling == _filling(number) * len(filling)
        return (number, float(time_s)) if ok else None
    except ValueError:
        return None


def _filling(sequence):
    return chr(ord("a") + sequence % 26)


def put_line(key, value):
    return json.dumps({"key": key, "value": value}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def split_stream(data, sizes):
    """Cuts data into pieces of these sizes; the last size repeats."""
    pieces, at, size = [], 0, len(data)
    sizes = iter(sizes)
    while at < len(data):
        size = next(sizes, size)
        pieces.append(data[at : at + size])
        at += size
    return pieces


class InboundBook:
    """The puts that one phone sent: text and time of every sequence number."""

    def __init__(self, key, clock):
        self.key = key
        self._clock = clock
        self.sent = {}

    def line(self, length=0, filling=None):
        """The next put as a line of `length` bytes if that is possible."""
        sequence = len(self.sent)
        if filling is None:
            bare = len(put_line(self.key, f"{sequence}:"))
            filling = _filling(sequence) * max(0, length - bare)
        value = f"{sequence}:{filling}"
        self.sent[sequence] = [value, None]
        return put_line(self.key, value)

    def mark_sent(self, first, last):
        now = self._clock.now()
        for sequence in range(first, last):
            self.sent[sequence][1] = now

    def exact_bytes(self, total):
        """Valid lines of exactly `total` bytes together; blank lines where no put fits."""
        shortest = len(put_line(self.key, "0000:"))
        count = max(1, min(total // (shortest + 8), 400))
        if total < shortest + 8:
            return b"\n" * total
        data = b""
        for left in range(count, 0, -1):
            data += self.line((total - len(data)) // left)
        return data + b"\n" * (total - len(data))

    def chunks(self, seed, lines, alphabet):
        """Lines of random text with CR LF and blank lines between, cut at random places."""
        rng = random.Random(seed)
        letters = ALPHABETS.get(alphabet, alphabet)
        data = b""
        for _ in range(lines):
            line = self.line(filling="".join(rng.choice(letters) for _ in range(rng.randrange(60))))
            ending = rng.choice((b"\n", b"\n", b"\r\n", b"\n\n", b"\n\r\n"))
            data += line[:-1] + ending
        sizes = (rng.choice((1, 2, 3, 7, 63, 64, 65, 511, 512, 513, rng.randrange(1, 2000))) for _ in iter(int, 1))
        return split_stream(data, sizes)
