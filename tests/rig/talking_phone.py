"""The umockdev rig with an app that repeats what it heard and says what it is told: for whole conversations.

`umockdev-wrapper /usr/bin/python3 talking_phone.py CASE.json` with Debian's own Python; protocol of umock_phone.py.
Further keys of a case: `keys` (what the known app subscribes on opening). Further items: say, hear, events, chatter,
cut, node_mode, forgive_death.
"""

import json
import os
import shutil
import signal
import sys
from collections import deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fakes.applog import AppLog
from rig.umock_phone import UmockRig, serve

HEARD_LINES = 100_000  # older ones are forgotten: a flood is not kept
LINK_STRIDE = 1_000_000  # values of the chatter: attachment times this, plus a running number


class Ear(AppLog):
    """Keeps every line with its time and the number of the app's read() that brought it."""

    def __init__(self, clock):
        super().__init__(clock)
        self.heard = deque(maxlen=HEARD_LINES)
        self.count = 0
        self.reads = 0

    def line(self, raw, first_full):
        self._keep(raw)
        return super().line(raw, first_full)

    def joined_line(self, raw):
        self._keep(raw)
        super().joined_line(raw)

    def fragment(self, raw):
        self._keep(raw)
        super().fragment(raw)

    def _keep(self, raw):
        if raw.strip():
            self.heard.append((self._clock.now(), self.reads, raw.decode("utf-8", "replace")))
            self.count += 1

    def since(self, number):
        """The kept lines from `number` (counted from the first ever) on."""
        skip = max(0, number - (self.count - len(self.heard)))
        return list(self.heard)[skip:]


class TalkingRig(UmockRig):
    """Every app has an Ear; `do` knows the further items."""

    def __init__(self, case):
        super().__init__(case)
        self._said = {}
        for phone in self.board.phones.values():
            if "keys" in case:
                phone.app.keys = tuple(case["keys"])
            self._give_ear(phone.app)

    def _give_ear(self, app):
        ear, on_chunk = Ear(self.clock), app._on_chunk
        app.log = ear

        def counted(data):
            ear.reads += 1
            return on_chunk(data)

        app._on_chunk = counted

    def do(self, name, **arguments):
        item = getattr(self, f"_do_{name}", None)
        if item is None:
            return super().do(name, **arguments)
        with self.lock:
            return item(self.board.select(arguments.pop("phone", None))[0], **arguments)

    def _do_say(self, phone, text):
        """Writes bytes of the app, which need not be whole lines; false if it has no accessory open."""
        phone.app.write(text.encode())
        return phone.app.open

    def _do_hear(self, phone, since=0):
        ear = phone.app.log
        return {"lines": ear.since(since), "next": ear.count, "open": phone.app.open}

    def _do_events(self, phone, since=0):
        return phone.recorder.events[since:]

    def _do_chatter(self, phone, key, hz):
        """Puts a rising number `hz` times a second whenever the app is open; returns the newest one."""
        if phone not in self._said:
            self._said[phone] = 0
            self._chatter(phone, key, hz)
        return self._said[phone]

    def _chatter(self, phone, key, hz):
        self.clock.call_later(1 / hz, lambda: self._chatter(phone, key, hz))
        if phone.app.open and phone.function is not None:
            number = self._said[phone] % LINK_STRIDE + 1
            self._said[phone] = len(phone.recorder.times("attach")) * LINK_STRIDE + number
            phone.app.write(json.dumps({"action": "put", "key": key, "value": self._said[phone]}).encode() + b"\n")

    def _do_cut(self, phone, step, byte, gap_s):
        """Unplugs after `byte` bytes of the next transfer of this direction; plugs in again `gap_s` later."""

        def cut():
            phone.unplug()
            self.clock.call_later(gap_s, phone.plug)

        pipe = phone.function.in_ if step == "read" else phone.function.out
        pipe.cut = (byte, cut)

    def _do_forgive_death(self, phone):
        """A daemon that was killed in the middle of an ioctl resets its connection: no fault of anybody."""
        self.problems[:] = [text for text in self.problems if "GLib.GError" not in text]

    def _do_node_mode(self, phone, mode):
        """File mode of the device nodes from now on, the present ones included."""
        self.node_mode = mode
        for node in self.nodes.values():
            (self.root / node.path.lstrip("/")).chmod(mode)


def main():
    rig = TalkingRig(json.loads(Path(sys.argv[1]).read_text()))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        path = rig.root / "rig.sock"
        serve(rig, path)
        answer = {"root": str(rig.root), "socket": str(path), "preload": os.environ.get("LD_PRELOAD", "")}
        print(json.dumps(answer), flush=True)
        sys.stdin.read()
    finally:
        rig.close()
        shutil.rmtree(rig.root, ignore_errors=True)
        os._exit(1 if rig.problems else 0)


if __name__ == "__main__":
    main()
