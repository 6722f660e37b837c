"""The caller's side of the umockdev rig: starts it in a private directory, talks to it, leaves nothing behind."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

__all__ = ["UmockPhones"]

HERE = Path(__file__).resolve().parent
PREFIX = "aoabridge-rig-"
START_S = 20
STOP_S = 10


def sweep():
    """Removes what killed runs left: directories whose owner is gone."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = path.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(path, ignore_errors=True)


class UmockPhones:
    """The emulated phones of one case as usbfs devices. `environment` is what a process under test needs."""

    def __init__(self, case):
        sweep()
        self.directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        self.directory.chmod(0o777)
        file = self.directory / "case.json"
        file.write_text(json.dumps(case))
        environment = {**os.environ, "TMPDIR": str(self.directory)}
        command = ["setpriv", "--pdeathsig", "TERM", "umockdev-wrapper", "/usr/bin/python3"]
        self._process = subprocess.Popen(
            [*command, str(HERE / "umock_phone.py"), str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the umockdev rig did not start: install umockdev, gir1.2-umockdev-1.0 and python3-gi")
        answer = json.loads(line)
        self.root = Path(answer["root"])
        self.socket_path = answer["socket"]
        self.environment = {"UMOCKDEV_DIR": answer["root"], "LD_PRELOAD": answer["preload"]}
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(self.socket_path)
        self._file = self._socket.makefile("rw")

    def do(self, name, phone=None, **arguments):
        """Runs one script item; raises RuntimeError with the rig's own error."""
        self._file.write(json.dumps({"do": name, "phone": phone, **arguments} if phone else {"do": name, **arguments}))
        self._file.write("\n")
        self._file.flush()
        answer = json.loads(self._file.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def stats(self):
        return self.do("stats")

    def close(self):
        """Ends the rig and removes its directory; returns its exit status (1 = it saw a forbidden call)."""
        self._file.close()
        self._socket.close()
        self._process.stdin.close()
        try:
            status = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._process.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()
