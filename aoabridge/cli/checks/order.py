"""All checks of ``doctor``, in the order in which a person would look."""

from collections.abc import Iterator
from pathlib import Path

from aoabridge.cli.checks.machine import (
    group_checks,
    journal_checks,
    library_checks,
    platform_checks,
    power_checks,
    unit_checks,
)
from aoabridge.cli.checks.network import network_checks
from aoabridge.cli.checks.result import Check, Outcome, from_issue, passed
from aoabridge.cli.checks.usb import device_checks, host_checks, rule_checks
from aoabridge.cli.client import connect
from aoabridge.cli.exits import CommandError
from aoabridge.cli.output import printable
from aoabridge.config import rendered
from aoabridge.config.loader import LoadResult
from aoabridge.phone.filter import DeviceName, DeviceRules

__all__ = ["all_checks"]


def all_checks(root: Path, loaded: LoadResult, socket: str | None) -> list[Check]:
    """Every check, in the order in which a person would look."""
    checks = [*platform_checks(), *host_checks(root), *library_checks(), *rule_checks(root), *group_checks()]
    checks += [*device_checks(root, _rules(loaded)), *power_checks(root), *_config_checks(loaded)]
    if loaded.config is not None:
        checks += network_checks(loaded.config)
    return [*checks, *unit_checks(root), *journal_checks(root), *_daemon_checks(socket)]


def _rules(loaded: LoadResult) -> DeviceRules:
    if loaded.config is None:
        return DeviceRules()
    devices = loaded.config.devices
    names = tuple(DeviceName(device.name, device.serial, device.port) for device in loaded.config.device)
    return DeviceRules(devices.max, devices.accept, devices.allow, devices.deny, devices.reset_stuck, names)


def _config_checks(loaded: LoadResult) -> Iterator[Check]:
    if loaded.errors:
        yield from_issue("config-rejected", error=rendered(loaded.errors[0]))
    elif loaded.source == "defaults":
        yield passed("config-rejected", "configuration: no file, the defaults apply")
    else:
        yield passed("config-rejected", f"configuration: {loaded.source} is in order")


def _daemon_checks(socket: str | None) -> Iterator[Check]:
    """Whether a daemon runs, and what it complains about itself."""
    try:
        with connect(socket) as daemon:
            snapshot = daemon.request("status")
    except CommandError as error:
        yield Check("daemon", Outcome.WARN, printable(str(error)), error.cure)
        return
    yield passed("daemon", f"daemon: {snapshot.get('verdict')}, {snapshot.get('sentence')}")
    results = {"problem": Outcome.FAIL, "warn": Outcome.WARN}
    for issue in snapshot.get("issues", ()):
        outcome = results.get(issue["severity"], Outcome.PASS)
        yield Check(issue["code"], outcome, issue["sentence"], issue["fix"], issue["subject"])
