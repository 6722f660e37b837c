"""The files of the Debian package that can be judged without building it."""

import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from aoabridge.config.loader import default_config, parse_config

DEBIAN = Path(__file__).parents[2] / "systemd" / "deb"
CONFIGURATION = (DEBIAN / "aoabridge.toml").read_text()
EXAMPLES = ("name", "team")  # settings without a default


def test_the_shipped_configuration_says_nothing() -> None:
    result = parse_config(CONFIGURATION, "aoabridge.toml", host="pi")
    assert result.errors == ()
    assert result.config == default_config("pi")


def test_its_comments_are_all_the_defaults() -> None:
    settings = re.findall(r"^#(?=[^# ])(.*)$", CONFIGURATION, re.MULTILINE)
    chosen = [line for line in settings if line.partition(" =")[0] not in EXAMPLES]
    result = parse_config("\n".join(chosen), "aoabridge.toml", host="pi")
    assert result.errors == ()
    assert result.config == default_config("pi")


def test_every_example_is_accepted() -> None:
    settings = re.findall(r"^##?(?=[^# ])(.*)$", CONFIGURATION, re.MULTILINE)
    robots = [line for line in settings if line.startswith(("team", "server", "embedded = true"))]
    assert len(robots) == 3
    for robot in robots:
        others = [line for line in settings if line not in robots or line == robot]
        others = [line for line in others if not (line.startswith("listen") and robot.startswith("team"))]
        assert parse_config("\n".join(others), "aoabridge.toml", host="pi").errors == ()


def test_it_shows_every_setting() -> None:
    shown = set(re.findall(r"^##?([a-z0-9_]+) =", CONFIGURATION, re.MULTILINE))
    shown |= set(re.findall(r"^##?\[+([a-z.]+)\]", CONFIGURATION, re.MULTILINE))
    config = msgspec.to_builtins(default_config("pi"))
    assert isinstance(config, dict)
    sections = {"nt", "phone", "devices", "access", "web"}
    wanted = set(config) | {key for section in sections for key in config[section]} | set(config["sources"])
    assert wanted - {"server", "team", "embedded"} <= shown


@pytest.mark.parametrize("script", ["preinst", "postinst", "prerm", "postrm", "aoabridge"])
def test_scripts_are_right_for_the_plain_shell(script: str) -> None:
    done = subprocess.run(["dash", "-n", str(DEBIAN / script)], capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")
    assert (DEBIAN / script).read_text().startswith("#!/bin/sh\n")


def test_the_command_is_two_lines() -> None:
    assert (DEBIAN / "aoabridge").read_text().splitlines() == [
        "#!/bin/sh",
        'exec /opt/aoabridge/current/bin/python -P -m aoabridge "$@"',
    ]


def test_the_package_depends_on_what_it_does_not_bring() -> None:
    depends = re.search(r"^Depends: (.*)$", (DEBIAN / "control.in").read_text(), re.MULTILINE)
    assert depends is not None
    assert depends[1] == (
        "python3 (>= @PYTHON@), python3 (<< @NEXT_PYTHON@), python3-systemd, libusb-1.0-0, udev, "
        "systemd | systemd-standalone-sysusers"
    )
