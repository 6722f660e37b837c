"""What somebody who helps would ask for, in one zip: no secrets, serials hashed, hardware addresses cut."""

import hashlib
import io
import json
import re
import subprocess
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from aoabridge.adapters.hotplug import scan
from aoabridge.cli.checks.result import Check
from aoabridge.config.loader import LoadResult, rendered
from aoabridge.config.show import as_toml

__all__ = ["MAX_BYTES", "anonymous", "write_bundle"]

MAX_BYTES = 5 * 1024 * 1024  # an e-mail takes it
MAX_PART_BYTES = 8 * 1024 * 1024  # of text, before compression
COMMAND_S = 5.0
_MAC = re.compile(r"\b([0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){2})(?::[0-9a-fA-F]{2}){3}\b")

_COMMANDS = {
    "journal.txt": ("journalctl", "-u", "aoabridge", "-n", "500", "--no-pager", "-o", "short-iso"),
    "addresses.txt": ("ip", "address"),
    "routes.txt": ("ip", "route"),
}


def write_bundle(
    path: Path, root: Path, loaded: LoadResult, checks: Sequence[Check], ask: Callable[..., Mapping[str, Any] | None]
) -> list[str]:
    """Write the zip and return the names inside; raises OSError if it cannot be made."""
    devices = scan(root / "sys")
    parts: dict[str, str] = {
        "checks.json": _json([msgspec.to_builtins(check) for check in checks]),
        "config.toml": "" if loaded.config is None else as_toml(loaded.config, loaded.given),
        "config-errors.txt": "\n".join(rendered(error) for error in loaded.errors),
        "usb.json": _json([msgspec.to_builtins(device) for device in devices]),
    }
    for name in ("status", "devices", "topics", "log"):
        answer = ask(name)
        if answer is not None:
            parts[f"{name}.json"] = _json(answer)
    for device in devices:
        command = ("udevadm", "info", "--query=property", f"--path={root / 'sys/bus/usb/devices' / device.port}")
        parts[f"udev-{device.port}.txt"] = _output(command)
    parts |= {name: _output(command) for name, command in _COMMANDS.items()}
    secrets = {device.serial for device in devices} | _named_serials(loaded)
    shown = {name: anonymous(text, secrets) for name, text in parts.items() if text.strip()}
    path.write_bytes(_zipped(shown))
    return list(shown)


def anonymous(text: str, serials: set[str]) -> str:
    """The text with every serial hashed and every hardware address cut to its maker's half."""
    for serial in sorted(serials, key=len, reverse=True):
        if len(serial) >= 4:
            text = text.replace(serial, "serial-" + hashlib.sha256(serial.encode()).hexdigest()[:8])
    return _MAC.sub(r"\1:xx:xx:xx", text)


def _named_serials(loaded: LoadResult) -> set[str]:
    return set() if loaded.config is None else {device.serial for device in loaded.config.device}


def _zipped(parts: Mapping[str, str]) -> bytes:
    """The archive; the longest parts lose their beginning until it is small enough."""
    texts = {name: text.encode("utf-8", "replace")[-MAX_PART_BYTES:] for name, text in parts.items()}
    while True:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in texts.items():
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        if buffer.tell() <= MAX_BYTES:
            return buffer.getvalue()
        longest = max(texts, key=lambda name: len(texts[name]))
        texts[longest] = texts[longest][len(texts[longest]) // 2 :]


def _output(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, timeout=COMMAND_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str)
