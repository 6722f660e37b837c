"""What runs inside a test machine, container or virtual: cases against the installed package, one line of result each.

Runs under an unpacked copy of the product's Python environment, which has ntcore; nothing of aoabridge is imported. A
case is a function; what it raises is its failure, and the cases after it still run.
"""

import contextlib
import json
import re
import socket
import subprocess
import time
import traceback
from pathlib import Path

import ntcore

UNIT = "aoabridge.service"
CONTROL = "/run/aoabridge/control.sock"
CONFIG = Path("/etc/aoabridge/aoabridge.toml")
ROBOT_PORT = 5810
PACKAGES = Path("/packages")
LONG_S = 60.0  # an emulated or busy machine
LOOK_S = 0.1  # each look starts a program or asks the daemon; more often and an emulated machine does nothing else
INSTALL_S = 300


def wait(what, condition, seconds=LONG_S):
    """The first true value of the condition."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"never came: {what}")
        time.sleep(LOOK_S)


def run(*command, check=True, seconds=120):
    """Exit status and output of both streams."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds, check=False
    )
    assert not check or done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout}"
    return done.returncode, done.stdout


def show(*names):
    """Properties of the unit."""
    lines = run("systemctl", "show", UNIT, "-p", ",".join(names))[1].splitlines()
    values = dict(line.partition("=")[::2] for line in lines)
    return values[names[0]] if len(names) == 1 else [values[name] for name in names]


def main_pid():
    return int(show("MainPID"))


def ask(request, **arguments):
    """One answer of the daemon."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(CONTROL)
        connection.sendall(json.dumps({"request": request, "arguments": arguments}).encode() + b"\n")
        with connection.makefile("rb") as lines:
            answer = json.loads(lines.readline())
    assert answer["ok"], answer
    return answer["result"]


def status():
    """The snapshot, None while nobody answers."""
    try:
        return ask("status")
    except (OSError, ValueError):
        return None


def phones():
    """Names of phones -> state."""
    snapshot = status()
    return {} if snapshot is None else {phone["port"]: phone["state"] for phone in snapshot["phones"]}


def wait_phone(state="live", port=None, seconds=LONG_S):
    """The phone, or the one of a port, is in this state."""
    wait(
        f"phone {state}; last {phones()}",
        lambda: state in ([phones().get(port)] if port else phones().values()),
        seconds,
    )


def issues():
    snapshot = status()
    return set() if snapshot is None else {issue["code"] for issue in snapshot["issues"]}


def install(package, check=True):
    """``dpkg -i``; the administrator's configuration stays."""
    return run("dpkg", "--force-confold", "-i", str(package), check=check, seconds=INSTALL_S)


def package(version=None):
    """The package, or its variant of that version."""
    if version is None:
        return next(path for path in PACKAGES.glob("*.deb") if "_7.0." not in path.name)
    return next(PACKAGES.glob(f"*_{version}~*.deb"))


class Robot:
    """A NetworkTables server in this process."""

    def __init__(self):
        self.instance = ntcore.NetworkTableInstance.create()
        self.instance.startServer("", "127.0.0.1", 0, ROBOT_PORT)
        options = ntcore.PubSubOptions(periodic=0.01, sendAll=True, keepDuplicates=True)
        self.everything = ntcore.MultiSubscriber(self.instance, [""], options)
        self.publisher = self.instance.getDoubleTopic("/to/phone").publish(options)
        self.number = 0.0

    def say(self):
        """A new value; returns it."""
        self.number += 1.0
        self.publisher.set(self.number)
        self.instance.flush()
        return self.number

    def value(self, topic):
        found = self.instance.getEntry(topic).getValue()
        return found.value() if found.isValid() else None


class Phones:
    """The emulated phones behind their control socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        wait("the phones' socket", lambda: Path(path).exists())
        self.socket.connect(path)
        self.file = self.socket.makefile("rw")

    def do(self, name, phone=None, **arguments):
        request = {"do": name, **arguments} | ({"phone": phone} if phone else {})
        self.file.write(json.dumps(request) + "\n")
        self.file.flush()
        answer = json.loads(self.file.readline())
        assert "error" not in answer, answer
        return answer["result"]

    def say(self, message, phone=None):
        assert self.do("say", phone, text=json.dumps(message) + "\n"), "the app is closed"

    def heard(self, phone=None, since=0):
        lines = self.do("hear", phone, since=since)["lines"]
        return [json.loads(text) for _, _, text in lines]


def relay_both_ways(robot, rig, phone=None, topic="/from/phone"):
    """A value of the robot arrives in the app, and one of the app at the robot."""
    rig.say({"action": "subscribe", "keys": ["/to/phone"]}, phone)
    number = robot.say()
    wait(
        "the robot's value in the app",
        lambda: any(message.get("value") == number for message in rig.heard(phone)),
    )

    def arrived():
        # As apps do: what was written before the link was ready is refused, and put again.
        rig.say({"action": "put", "key": topic, "value": number + 0.5}, phone)
        time.sleep(0.2)
        return robot.value(topic) == number + 0.5

    wait("the robot is connected", lambda: status()["robot"]["state"] == "connected")
    wait("the app's value at the robot", arrived)


# Cases that container and virtual machine share.


def case_install_is_ready(emulated=False):
    """An emulated processor may need more than the 10 s that the package waits."""
    text = install(package())[1]
    ready = re.search(r"is ready; its page: http://\S+:5808/", text)
    assert ready or (emulated and "the service is not ready yet" in text), text
    ready_after_start()


def case_boot_is_ready():
    """The package is part of the image; its unit starts with the machine, and without a robot."""
    ready_after_start()


def ready_after_start():
    wait("the service is active", lambda: show("ActiveState") == "active")
    state, result, restarts = show("ActiveState", "Result", "NRestarts")
    assert (state, result, restarts) == ("active", "success", "0")
    wait("STATUS is the sentence", lambda: show("StatusText") == status()["sentence"], 10)
    owner = Path(f"/proc/{main_pid()}").stat().st_uid
    assert owner == int(run("id", "-u", "aoabridge")[1])


def choose_robot():
    CONFIG.write_text(f'[nt]\nserver = "127.0.0.1"\nport = {ROBOT_PORT}\n')


def case_reload_takes_the_robot():
    choose_robot()
    pid = main_pid()
    run("systemctl", "reload", UNIT)
    wait("robot connected", lambda: status()["robot"]["state"] == "connected")
    good = CONFIG.read_text()
    CONFIG.write_text(good.replace("server", "sevrer"))
    code, _ = run("systemctl", "reload", UNIT, check=False)
    assert code != 0
    assert "sevrer" in run("journalctl", "-b", "-u", UNIT, "--no-pager")[1]
    CONFIG.write_text(good)
    run("systemctl", "reload", UNIT)
    assert status()["robot"]["state"] == "connected"
    assert (main_pid(), show("ActiveState")) == (pid, "active")


def case_sandbox_is_in_force():
    text = Path(f"/proc/{main_pid()}/status").read_text()
    facts = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert (facts["NoNewPrivs"], facts["Seccomp"], facts["CapBnd"]) == ("1", "2", "0000000000000000"), facts


def case_killed_service_comes_back(robot, rig):
    wait_phone()
    pid, before = main_pid(), int(show("NRestarts"))
    run("kill", "-KILL", str(pid))
    wait("restarted", lambda: int(show("NRestarts")) == before + 1 and show("ActiveState") == "active")
    wait_phone()
    relay_both_ways(robot, rig, topic="/after/kill")


def case_restart_with_phone_in_accessory_mode(robot, rig):
    run("systemctl", "restart", UNIT)
    wait_phone()
    relay_both_ways(robot, rig, topic="/after/restart")


def case_stop_takes_two_seconds():
    wait_phone()
    began = time.monotonic()
    run("systemctl", "stop", UNIT)
    took_s = time.monotonic() - began
    assert took_s <= 2.0, took_s
    assert (show("Result"), show("ExecMainStatus")) == ("success", "0")
    run("systemctl", "start", UNIT)


def case_broken_upgrade_keeps_the_running_one():
    pid = main_pid()
    code, text = install(package("7.0.1"), check=False)
    assert code != 0
    assert "previous version stays in use" in text, text
    assert (main_pid(), show("ActiveState")) == (pid, "active")
    wait("issue", lambda: "update-rolled-back" in issues())


def case_upgrade_that_does_not_start_is_taken_back():
    before = status()["version"]
    code, text = install(package("7.0.2"), check=False)
    assert code != 0
    assert "did not become ready" in text, text
    wait("the old version", lambda: (status() or {}).get("version") == before)
    assert str(Path("/opt/aoabridge/current").readlink()) == "previous"
    wait("issue", lambda: "update-rolled-back" in issues())


def case_upgrade():
    install(package("7.0.3"))
    wait("the new version", lambda: (status() or {}).get("version") == "7.0.3")
    wait("no issue", lambda: "update-rolled-back" not in issues())


def case_remove_and_purge():
    run("dpkg", "--remove", "aoabridge")
    assert run("pgrep", "-u", "aoabridge", check=False)[0] == 1
    assert show("LoadState") == "not-found"
    assert CONFIG.exists()
    run("dpkg", "--purge", "aoabridge")
    assert not CONFIG.exists()
    assert not Path("/var/lib/aoabridge").exists()
    assert not Path("/run/aoabridge").exists()


def play(cases, out):
    """Runs (function, arguments) pairs; writes a line per case and one result line; returns the number of failures."""
    failed = 0
    for function, arguments in cases:
        began = time.monotonic()
        try:
            function(*arguments)
            result = "ok"
        except Exception:  # noqa: BLE001 - whatever it is, it is the result of the case
            failed += 1
            result = "FAILED"
            out.write(traceback.format_exc())
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                out.write(run("journalctl", "-b", "-u", UNIT, "--no-pager", "-n", "30", check=False)[1])
        name = function.__name__.removeprefix("case_")
        out.write(f"CASE {name} {result} {time.monotonic() - began:.1f} s\n")
        out.flush()
        if failed and function is cases[0][0]:
            break  # nothing is installed
    out.write(f"RESULT rc={min(failed, 1)}\n")
    out.flush()
    return failed
