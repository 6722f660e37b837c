"""Plugs a phone of the rig in and notes the moment, in seconds of the monotonic clock: plug.py SOCKET PHONE NOTE."""

import json
import socket
import sys
import time
from pathlib import Path


def main(path, phone, note):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(json.dumps({"do": "plug", "phone": phone}).encode() + b"\n")
        with connection.makefile("rb") as lines:
            answer = json.loads(lines.readline())
    Path(note).write_text(str(time.monotonic()))
    return 0 if "result" in answer else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
