"""The one table of everything that can be wrong: what is said, how it is cured, under which message id it is logged.

Command line, page, NetworkTables, alerts, the journal's catalogue and the documentation are made from it. Texts hold
``{names}`` that are filled from the data of a case.
"""

import re
import uuid
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

__all__ = [
    "EVENTS",
    "ISSUES",
    "MAX_FIX",
    "MAX_SENTENCE",
    "IssueSpec",
    "Severity",
    "filled",
    "message_id",
]

MAX_SENTENCE = 60
MAX_FIX = 120

_NAMESPACE = uuid.UUID("7c17ef5b-e827-43b0-877c-81617a2fb2dd")
_FIELD = re.compile(r"\{([a-zA-Z_]+)\}")


class Severity(Enum):
    """How bad an issue is; the order is that of every list."""

    PROBLEM = "problem"
    WARN = "warn"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


class IssueSpec(NamedTuple):
    """One row. ``hold_s``: a condition shows after lasting this long. ``times`` in ``window_s``: or after repeating."""

    code: str
    severity: Severity
    sentence: str
    fix: str
    hold_s: float = 0.0
    times: int = 1
    window_s: float = 0.0
    doctor: bool = False


P, W, INFO = Severity.PROBLEM, Severity.WARN, Severity.INFO

_ROWS = (
    IssueSpec(
        "usb-permission",
        P,
        "No permission to open {subject}",
        "`sudo udevadm control --reload && sudo udevadm trigger`, replug; rule missing? `aoabridge doctor`",
        hold_s=2,
    ),
    IssueSpec(
        "usb-unlisted",
        W,
        "{subject} looks like a phone of an unknown maker",
        'Add `allow = ["{vid}:*"]` to [devices] and the udev line that `aoabridge doctor` prints',
    ),
    IssueSpec(
        "usb-busy",
        P,
        "{subject} is held by {process}",
        "Stop {process}: `adb kill-server` / `sudo systemctl stop {unit}`",
        hold_s=5,
    ),
    IssueSpec(
        "usb-flapping",
        P,
        "{subject} keeps dropping off USB",
        "Change the cable, then use a powered hub; port {port}",
        times=3,
        window_s=60,
    ),
    IssueSpec("usb-power", W, "Power supply too weak", "5 V supply with more current; seen {n}x"),
    IssueSpec(
        "usb-memory",
        W,
        "USB buffer memory exhausted",
        "`echo 64 | sudo tee /sys/module/usbcore/parameters/usbfs_memory_mb`",
    ),
    IssueSpec("phone-lost", P, "{subject} lost", "Push the plug in at port {port}, then unlock it"),
    IssueSpec(
        "phone-refused",
        W,
        "{subject} refuses accessory mode",
        "Unlock it, replug; switch its work profile, kiosk mode or USB blocker off",
    ),
    IssueSpec(
        "phone-switch",
        P,
        "{subject} does not enter accessory mode",
        "Use another cable, reboot the phone",
    ),
    IssueSpec(
        "app-silent",
        P,
        "{subject} is connected, its app says nothing",
        'Open the app on {subject}, accept the USB dialog, tick "always"',
        hold_s=5,
    ),
    IssueSpec(
        "app-stalled",
        P,
        "The app on {subject} does not read",
        "Bring the app to the front; exempt it from battery saving",
        hold_s=2,
    ),
    IssueSpec(
        "app-garbage",
        W,
        "The app on {subject} sends lines that are no messages",
        "Update the app; see `aoabridge monitor {subject}`",
        times=11,
        window_s=60,
    ),
    IssueSpec(
        "serial-duplicate",
        W,
        "Two phones have the serial of {subject}",
        "Name them by `port =` in [[device]]",
    ),
    IssueSpec(
        "nt-unset",
        P,
        "No robot chosen",
        "Set `team = N` in [nt], then `sudo systemctl reload aoabridge`",
    ),
    IssueSpec(
        "nt-no-link",
        P,
        "This machine has no network",
        "Plug in the Ethernet cable; check the switch has power",
    ),
    IssueSpec(
        "nt-subnet",
        W,
        "No own address in the robot's network",
        "Set a static 10.{TE}.{AM}.6-.19, mask 255.255.255.0",
    ),
    IssueSpec(
        "nt-refused",
        P,
        "{subject} answers, but no robot program",
        "Robot code is not running: deploy or restart it",
    ),
    IssueSpec(
        "nt-timeout",
        P,
        "No answer from the robot",
        "Is the robot on? `ping {host}`; team number right?",
    ),
    IssueSpec(
        "nt-lost",
        P,
        "Robot connection lost",
        "Check Ethernet to the radio/roboRIO; robot code restarted?",
    ),
    IssueSpec(
        "nt-flapping",
        W,
        "Robot connection keeps dropping",
        "Check cable, radio, robot code, any program that floods; or raise `nt.period_ms`",
        times=3,
        window_s=60,
    ),
    IssueSpec(
        "nt-blocked",
        P,
        "NetworkTables had stopped sending",
        "Client restarted by itself; lower put rate if it returns",
        window_s=60,
    ),
    IssueSpec(
        "name-conflict",
        P,
        "Another bridge is called {subject}",
        "Set a different `name` on one of {a}, {b}; restart it",
    ),
    IssueSpec(
        "put-refused",
        W,
        "Puts of {subject} are refused",
        "{code} on {topic}: see [access] or the topic's type",
        window_s=10,
    ),
    IssueSpec(
        "schema-missing",
        W,
        "No schema for {subject}",
        "Robot publishes bytes without schema: publish with a struct publisher",
        hold_s=5,
    ),
    IssueSpec(
        "clock-step", INFO, "The wall clock moved by {step_s} s", "None needed; logs carry monotonic time", window_s=600
    ),
    IssueSpec("config-rejected", P, "Configuration refused: {error}", "`aoabridge config check`"),
    IssueSpec(
        "config-restart",
        W,
        "Changed settings wait for a restart",
        "`sudo systemctl restart aoabridge`",
    ),
    IssueSpec("source-silent", W, "{subject}: nothing received", "Check sender and `allow_from`", hold_s=5),
    IssueSpec("source-bad", W, "{subject}: {percent} % undecodable", "Check protocol and byte order"),
    IssueSpec("source-bind", P, "{subject}: port {port} taken", "Stop {process}"),
    IssueSpec(
        "fms-info-owned",
        W,
        "{subject} is published by the robot program",
        "The robot program owns {table}: remove `write_fms_info` / `write_driver_station`",
    ),
    IssueSpec("web-bind-failed", W, "Status page: port {port} in use", "Stop {process} or set `web.port`"),
    IssueSpec("disk-read-only", INFO, "Disk not writable: logs in RAM", "None needed; nothing of the relay is written"),
    IssueSpec(
        "record-stopped",
        W,
        "Recording stopped: {reason}",
        "`aoabridge record status`, copy files off",
    ),
    IssueSpec(
        "overload",
        W,
        "This machine is overloaded",
        'Unsubscribe from "all" topics; raise `nt.period_ms`',
        hold_s=10,
    ),
    IssueSpec(
        "update-rolled-back",
        W,
        "Version {version} did not start",
        "Old version runs; see `aoabridge log`, reinstall {version}",
    ),
    IssueSpec(
        "platform",
        P,
        "Platform not supported: {reason}",
        "Install the 64-bit image / Debian 12 or newer",
        doctor=True,
    ),
    IssueSpec(
        "usb-none",
        P,
        "No USB host on this machine",
        "Use the board's USB-A port, enable the controller",
        doctor=True,
    ),
    IssueSpec(
        "group-missing",
        W,
        "{subject} is not in group aoabridge",
        "`sudo usermod -aG aoabridge $USER`",
        doctor=True,
    ),
    IssueSpec(
        "unit-edited",
        W,
        "The service unit differs from the package",
        "`systemctl revert aoabridge`",
        doctor=True,
    ),
    IssueSpec(
        "journal-large",
        W,
        "The journal is larger than 500 MB",
        "Put `[Journal]` and `SystemMaxUse=100M` into /etc/systemd/journald.conf.d/size.conf",
        doctor=True,
    ),
)

ISSUES: Mapping[str, IssueSpec] = {spec.code: spec for spec in _ROWS}
"""Code -> row, in the order of the table."""

EVENTS = (
    "started",
    "stopping",
    "ready",
    "reloaded",
    "phone-live",
    "phone-gone",
    "nt-connected",
    "record-started",
    "record-ended",
    "match-start",
    "match-end",
)
"""Events that have a message id of their own without being issues."""


def message_id(code: str) -> str:
    """The journal's MESSAGE_ID of an issue code or an event, 32 hex digits."""
    return uuid.uuid5(_NAMESPACE, code).hex


def filled(template: str, data: Mapping[str, object], limit: int) -> str:
    """A text of the table with its names filled in, cut to ``limit`` characters; an unknown name shows as "?"."""
    text = _FIELD.sub(lambda match: str(data.get(match[1], "?")), template)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
