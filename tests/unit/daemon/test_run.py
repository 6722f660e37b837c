"""The end of a process that cannot end in order."""

import os
import subprocess
import sys

from aoabridge.exits import Exit

DEADLINE_S = 8.0
PROGRAM = """
import threading
from aoabridge.adapters.logs import Logs
from aoabridge.daemon.run import _die

def stand_still():
    threading.Event().wait()

threading.Thread(target=stand_still, name="usb-read:scout", daemon=True).start()
Logs(form="text").install("info", {})
_die("a thread hangs")
"""


def test_the_log_says_where_each_thread_stood() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
    assert ended.returncode == Exit.INTERNAL
    text = ended.stderr.decode()
    assert "a thread hangs" in text
    (line,) = [line for line in text.splitlines() if "usb-read:scout" in line]
    assert "stand_still" in line


def test_who_does_not_read_the_log_does_not_keep_the_process() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while os.write(writer, bytes(4096)):
            pass
    except BlockingIOError:
        os.set_blocking(writer, True)
    ended = subprocess.run([sys.executable, "-c", PROGRAM], stderr=writer, timeout=DEADLINE_S, check=False)
    os.close(reader)
    os.close(writer)
    assert ended.returncode == Exit.INTERNAL


def test_nor_does_a_closed_stderr() -> None:
    command = ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, PROGRAM]
    assert subprocess.run(command, timeout=DEADLINE_S, check=False).returncode == Exit.INTERNAL
