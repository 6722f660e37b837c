"""Hours of the real daemon with a whole robot's dashboard, a phone and the page, and whether it grows meanwhile.

    python tests/faults/soak.py [--hours N] [--json [FILE]] [--write]

300 topics at 50 Hz go to one phone on real libusb, which puts ten values a second; the page's websocket is open. Exits
with 1 if memory, descriptors, threads or log grow. ``--write`` puts the report into docs/reliability.md.
"""

import argparse
import json
import os
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from websockets.exceptions import ConnectionClosed  # noqa: E402 (below the path)
from websockets.sync.client import connect  # noqa: E402

from faults.document import put_section  # noqa: E402
from faults.growth import Growth, Sample, growth  # noqa: E402
from rig.daemon_process import DaemonProcess  # noqa: E402
from rig.main_job import TalkingPhones  # noqa: E402
from rig.nt_process import NtProcess, free_port  # noqa: E402

TOPICS, HZ, PUTS_HZ = 300, 50, 10
SAMPLE_S = 10.0
MIN_SAMPLES = 12
START_S = 60.0
TICKS = os.sysconf("SC_CLK_TCK")
CONFIG = """
[nt]
server = "127.0.0.1"
port = {robot}
[web]
enabled = true
bind = "127.0.0.1"
port = {page}
"""


class Page:
    """A browser's websocket that reads all it gets; ``messages`` counts."""

    def __init__(self, port: int) -> None:
        self._open = ExitStack()
        self._connection = self._open.enter_context(
            connect(f"ws://127.0.0.1:{port}/ws", compression=None, max_size=None)
        )
        self.messages = 0
        self.ended = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for _message in self._connection:
                self.messages += 1
        except ConnectionClosed:
            pass
        finally:
            self.ended = True

    def close(self) -> None:
        self._open.close()
        self._thread.join()


class Soak:
    """One run; ``samples`` so far."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.every_s = min(SAMPLE_S, seconds / MIN_SAMPLES)
        self.samples: list[Sample] = []
        self.log_tail: list[str] = []

    def run(self) -> Growth:
        """Everything started, sampled, judged and ended."""
        with ExitStack() as stack:
            self._robot = NtProcess.server()
            stack.callback(self._robot.kill)
            self._robot.start()
            self._phones = TalkingPhones({"phones": [{}], "keys": ["/load/"]})
            stack.callback(self._phones.close)
            self._start_daemon(stack)
            self._robot.stream("/load/", TOPICS, HZ)
            self._phones.do("plug")
            self._phones.do("chatter", key="/phone/p1", hz=PUTS_HZ)
            self._daemon.until(lambda: self._phones.count() > TOPICS, START_S)
            self._sample_all()
            self.log_tail = self._daemon.log[-20:]
        return growth(self.samples)

    def _start_daemon(self, stack: ExitStack) -> None:
        page = free_port()
        variables = [f"{name}={value}" for name, value in self._phones.environment.items()]
        self._daemon = DaemonProcess(
            self._phones.directory,
            CONFIG.format(robot=self._robot.port, page=page),
            wrap=("setpriv", "--pdeathsig", "KILL", "env", *variables),
        )
        stack.callback(self._end_daemon)
        self._daemon.start()
        self._page = self._daemon.until(lambda: self._open_page(page), START_S)
        stack.callback(self._page.close)

    def _end_daemon(self) -> None:
        if self._daemon.process.poll() is None:
            self._daemon.stop()

    @staticmethod
    def _open_page(port: int) -> Page | None:
        try:
            return Page(port)
        except ConnectionRefusedError:  # its server opens in the background
            return None

    def _sample_all(self) -> None:
        began = time.monotonic()
        due_s = 0.0
        while True:
            at_s = time.monotonic() - began
            self.samples.append(self._sample(at_s))
            self._puts_arrive()
            if at_s >= self.seconds:
                return
            due_s += self.every_s
            time.sleep(max(0.0, began + due_s - time.monotonic()))

    def _sample(self, at_s: float) -> Sample:
        daemon = self._daemon
        if daemon.process.poll() is not None or self._page.ended:
            raise RuntimeError(f"daemon or page ended after {at_s:.0f} s: {daemon.log[-5:]}")
        fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return Sample(
            at_s,
            daemon.rss_mib(),
            daemon.descriptors(),
            daemon.threads(),
            (int(fields[11]) + int(fields[12])) / TICKS,
            len(daemon.log),
            self._phones.count(),
            self._page.messages,
        )

    def _puts_arrive(self) -> None:
        """The robot's memory of all it heard is emptied, so that it stays what it is."""
        arrived = any(sample["topic"] == "/phone/p1" for sample in self._robot.take())
        self._robot.samples.clear()
        if len(self.samples) > 1 and self.every_s > 1 and not arrived:
            raise RuntimeError(f"no put of the phone reached the robot before {self.samples[-1].at_s:.0f} s")


def text_of(result: Growth) -> str:
    """The report as a Markdown table."""
    figures = result.figures
    first, last, peak = figures["rss_mib"]
    rows = [
        ("length", f"{figures['hours']:.2f} h, judged {figures['steady_hours']:.2f} h ({figures['samples']} samples)"),
        ("values to the phone", f"{figures['values_per_s']:.0f} a second"),
        ("messages to the page", f"{figures['page_messages_per_s']:.1f} a second"),
        ("memory", f"{first:.1f} MiB to {last:.1f} MiB, at most {peak:.1f} MiB"),
        ("memory growth (line through all samples)", f"{figures['rss_mib_per_h']:+.2f} MiB/h, limit 1"),
        ("descriptors", "{} to {}".format(*figures["descriptors"])),
        ("threads", "{} to {}".format(*figures["threads"])),
        ("CPU of one core", f"{figures['cpu_percent']:.1f} %"),
        ("log lines", str(figures["log_lines"])),
    ]
    lines = ["| what | measured |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the figures and samples as one object")
    parser.add_argument("--write", action="store_true", help="put the report into docs/reliability.md")
    options = parser.parse_args(arguments)
    soak = Soak(options.hours * 3600)
    result = soak.run()
    text = text_of(result)
    if options.json:
        report = {"faults": result.faults, **result.figures, "log": soak.log_tail, "samples_of_run": soak.samples}
        serialized = json.dumps(report, indent=1) + "\n"
        if options.json == "-":
            print(serialized)
        else:
            Path(options.json).write_text(serialized)
    if options.json != "-":
        print(text)
    for fault in result.faults:
        print("WRONG:", fault, file=sys.stderr)
    if options.write and not result.faults:
        put_section("soak", text)
    return 1 if result.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
