"""The smoke test of an installation: what would fail at the first start fails here, in under three seconds."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path

import aoabridge
from aoabridge.config import config_path, load_config, rendered
from aoabridge.status.terminal import status_lines, without_daemon

__all__ = ["smoke_test"]

_NEEDED = ("msgspec", "ntcore", "orjson", "pyudev", "rich", "usb.core", "websockets")


def smoke_test(config: str | None) -> list[dict[str, object]]:
    """One entry per part: ``name``, ``ok``, ``text``."""
    parts: tuple[tuple[str, Callable[[], str]], ...] = (
        ("imports", _imports),
        ("libusb", _libusb),
        ("networktables", _networktables),
        ("configuration", lambda: _configuration(config)),
        ("rendering", _rendering),
    )
    return [_tried(name, part) for name, part in parts]


def _tried(name: str, part: Callable[[], str]) -> dict[str, object]:
    try:
        return {"name": name, "ok": True, "text": part()}
    except Exception as error:  # noqa: BLE001 - any failure of a part is the result that this test is for
        return {"name": name, "ok": False, "text": f"{type(error).__name__}: {error}"}


def _imports() -> str:
    names = [*_NEEDED, *_modules()]
    for name in names:
        importlib.import_module(name)
    return f"{len(names)} modules"


def _modules() -> Iterator[str]:
    for module in pkgutil.walk_packages(aoabridge.__path__, "aoabridge."):
        if not module.name.endswith("__main__"):
            yield module.name


def _libusb() -> str:
    _, origin = importlib.import_module("aoabridge.adapters.usb").load_backend()
    return f"the {origin} library starts"


def _networktables() -> str:
    nt = importlib.import_module("aoabridge.adapters.nt")
    client = nt.NtClient(nt.NtSettings(identity="aoabridge-check"), wake=lambda: None)
    client.open()
    client.close()
    return "an instance was made and destroyed"


def _configuration(given: str | None) -> str:
    path: Path = config_path(given)
    result = load_config(path)
    if result.errors:
        raise ValueError(rendered(result.errors[0]))
    return f"{path}: ok" if result.source != "defaults" else "the defaults"


def _rendering() -> str:
    return f"{len(status_lines(without_daemon(None, None)))} lines"
