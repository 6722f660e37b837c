"""`aoabridge demo`: everything in one process tree, that leaves nothing behind."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("address_beside_loopback")
DEADLINE_S = 30.0
FIRST_DATA_S = 2.0
MARK = "AOABRIDGE_TEST_DEMO"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.fixture
def page_port_taken() -> Iterator[None]:
    with socket.socket() as taken:
        with contextlib.suppress(OSError):  # then somebody else has it
            taken.bind(("0.0.0.0", 5808))
            taken.listen()
        yield


def demo(home: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """The demo in an empty home; its processes are known by an environment variable."""
    variables = {**os.environ, "HOME": str(home), "TMPDIR": str(home), MARK: str(home), **environment}
    command = [sys.executable, "-m", "aoabridge", "demo", *words]
    return subprocess.Popen(command, cwd=home, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def processes(home: Path) -> list[str]:
    """The running processes of a demo."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"{MARK}={home}\0".encode() in environment.read_bytes() + b"\0":
                found.append(environment.parent.name)
    return found


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_data_flows_both_ways_and_nothing_stays_behind(home: Path, page_port_taken: None) -> None:
    process = demo(home, "--seconds", "5", "--json")
    output, complaints = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, complaints) == (0, "")
    *ticks, summary = lines_of(output)
    assert [tick["type"] for tick in ticks] == ["tick"] * len(ticks)
    assert ticks[0]["phone"]["rx_lines"] > 0
    assert ticks[0]["seconds"] <= FIRST_DATA_S
    assert (summary["type"], summary["ok"], summary["topics"]) == ("summary", True, 300)
    assert summary["phone"]["rx_lines"] > 0 < summary["phone"]["tx_lines"]
    assert summary["phone"]["errors"] == summary["puts"]["refused"] == 0 < summary["puts"]["accepted"]
    for way in ("robot_to_phone", "phone_to_robot"):
        assert 0 < summary["latency_ms"][way]["p50"] <= summary["latency_ms"][way]["p99"]
    assert summary["rss_mib"] > 0
    assert processes(home) == []
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_pipe_gets_plain_lines(home: Path, environment: dict[str, str]) -> None:
    process = demo(home, "--seconds", "2", **environment)
    output, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert output.strip()
    assert "\x1b" not in output


def test_the_children_go_with_a_parent_that_is_killed(home: Path) -> None:
    process = demo(home, "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["type"] == "tick"
    assert processes(home)
    process.send_signal(signal.SIGKILL)
    process.wait(DEADLINE_S)
    deadline = time.monotonic() + 5
    while processes(home):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.stdout.close()
    process.stderr.close()


def test_ctrl_c_is_a_normal_end(home: Path) -> None:
    process = demo(home, "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["type"] == "tick"
    process.send_signal(signal.SIGINT)
    output, complaints = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, complaints) == (0, "")
    assert lines_of(output)[-1]["type"] == "summary"
    assert processes(home) == []
