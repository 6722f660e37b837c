"""One browser and one page server for all tests of a worker."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser.chromium import ROOT, Chromium


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def urls() -> Iterator[dict[str, str]]:
    """Scenario -> address."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    command = [sys.executable, str(Path(__file__).with_name("page_server.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(20) == 0
