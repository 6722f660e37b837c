"""Reads a configuration file: all of it is right, or none of it is used and every fault is named with its place."""

import re
import socket
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from aoabridge import __version__
from aoabridge.config.build import Builder, FaultAt, dotted
from aoabridge.config.locate import KeyPath, Place, line_column, locate
from aoabridge.config.migrate import migrate
from aoabridge.config.rules import is_own_address, violations
from aoabridge.config.schema import CURRENT_SCHEMA, MAX_FILE_BYTES, ROOT
from aoabridge.config.sections import Config
from aoabridge.errors import ConfigError

__all__ = ["LoadResult", "default_config", "default_name", "load_config", "parse_config", "rendered"]

_SYNTAX_AT = re.compile(r"^(.*?) \(at (?:line (\d+), column (\d+)|end of document)\)$", re.DOTALL)


class LoadResult(msgspec.Struct, frozen=True):
    """What became of a file. ``config`` is None exactly if there are ``errors``.

    ``source`` is the path, or "defaults" if there is no file. ``given`` holds the keys that the file itself sets.
    ``migrated_from`` is the file's older schema number. ``text`` is the file's text, for the last-good copy.
    """

    config: Config | None
    errors: tuple[ConfigError, ...]
    source: str
    given: frozenset[KeyPath] = frozenset()
    migrated_from: int | None = None
    text: str = ""


def default_name(host: str | None = None) -> str:
    """The host name as a bridge name: lower case, first label, everything else a dash."""
    label = (socket.gethostname() if host is None else host).split(".")[0].lower()
    return re.sub(r"[^a-z0-9-]+", "-", label).strip("-")[:32] or "aoabridge"


def default_config(host: str | None = None) -> Config:
    """What an empty file means on this host."""
    return _named(Config(name=default_name(host)))


def load_config(path: Path, *, host: str | None = None) -> LoadResult:
    """Read and judge a file; a file that does not exist means the defaults. Never raises for what the file holds."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return LoadResult(default_config(host), (), "defaults")
    except OSError as error:
        return _rejected([ConfigError(f"cannot be read: {error.strerror}", file=str(path))], str(path))
    if len(raw) > MAX_FILE_BYTES:
        message = f"the file is longer than {MAX_FILE_BYTES // 1024} KiB"
        return _rejected([ConfigError(message, file=str(path))], str(path))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = line_column(raw[: error.start].decode("utf-8"), error.start)
        return _rejected([ConfigError("not UTF-8 text", file=str(path), line=line, column=column)], str(path))
    return parse_config(text, str(path), host=host)


def parse_config(
    text: str, file: str, *, host: str | None = None, own: Callable[[str], bool] = is_own_address
) -> LoadResult:
    """Judge a text; ``file`` is only shown."""
    try:
        data = tomllib.loads(text)
        places = locate(text)
    except tomllib.TOMLDecodeError as error:
        return _rejected([_syntax_error(str(error), text, file)], file, text)
    except RecursionError:
        return _rejected([ConfigError("nested too deeply", file=file)], file, text)
    found = data.get("schema", CURRENT_SCHEMA)
    if isinstance(found, int) and not isinstance(found, bool) and found > CURRENT_SCHEMA:
        message = f"{found} is newer than this program reads"
        hint = f"aoabridge {__version__} reads up to schema {CURRENT_SCHEMA}: install the release that wrote this file"
        fault = FaultAt(("schema",), message, hint)
        return _rejected([_located(fault, places, text, file)], file, text)
    migrated = migrate(data, CURRENT_SCHEMA)
    builder = Builder()
    config = _named(builder.table(ROOT, migrated, (), **_fallbacks(migrated, host)))
    faults = builder.faults + _broken_rules(config, data, builder, own)
    if faults:
        errors = [_located(fault, places, text, file) for fault in faults]
        return _rejected(sorted(errors, key=lambda error: (error.line or 0, error.column or 0)), file, text)
    older = found if migrated is not data else None
    return LoadResult(config, (), file, frozenset(builder.given), older, text)


def rendered(error: ConfigError) -> str:
    """``file:line:column: key: message``, as far as each is known."""
    place = ":".join(str(part) for part in (error.file, error.line, error.column) if part is not None)
    return ": ".join(part for part in (place, error.key, str(error)) if part)


def _fallbacks(data: dict[str, Any], host: str | None) -> dict[str, str]:
    return {"name": default_name(host)} if not isinstance(data.get("name"), str) else {"name": "unnamed"}


def _named(built: msgspec.Struct) -> Config:
    """Give every source without a name that of the bridge."""
    assert isinstance(built, Config)
    kinds = {
        kind: tuple(
            settings if settings.name else msgspec.structs.replace(settings, name=built.name)
            for settings in getattr(built.sources, kind)
        )
        for kind in ("frc", "j519", "teleop")
    }
    return msgspec.structs.replace(built, sources=msgspec.structs.replace(built.sources, **kinds))


def _broken_rules(config: Config, data: dict[str, Any], builder: Builder, own: Callable[[str], bool]) -> list[FaultAt]:
    sources = data.get("sources")
    kinds = sources.items() if isinstance(sources, dict) else ()
    several = frozenset(kind for kind, value in kinds if isinstance(value, list))
    faults: list[FaultAt] = []
    for violation in violations(config, several, own):
        if any(key in builder.faulty for key in violation.keys):
            continue
        if violation.missing and any(
            key in builder.uncertain or key[:-1] in builder.uncertain for key in violation.keys
        ):
            continue
        written = (key for key in violation.keys if key in builder.given)
        key = violation.keys[0] if violation.missing else next(written, violation.keys[0])
        named = key[:-1] if isinstance(key[-1], int) and key[-2:-1] == ("listen",) else key
        faults.append(FaultAt(named, violation.message, violation.hint, violation.keys))
    return faults


def _located(fault: FaultAt, places: dict[KeyPath, Place], text: str, file: str) -> ConfigError:
    candidates = (*(fault.places or (fault.key,)), fault.key)
    parents = (fault.key[:length] for length in range(len(fault.key) - 1, 0, -1))
    place = next((places[path] for path in (*candidates, *parents) if path in places), None)
    line, column = (1, 1) if place is None else line_column(text, place.key if fault.at_key else place.value)
    message = fault.message
    if fault.key[0] == "device" and len(fault.key) > 1:
        message += _device_name(fault.key[1], text)
    return ConfigError(message, key=dotted(fault.key), file=file, line=line, column=column, hint=fault.hint)


def _device_name(index: str | int, text: str) -> str:
    devices = tomllib.loads(text)["device"]
    found = devices[index] if isinstance(index, int) and isinstance(devices, list) else None
    name = found.get("name") if isinstance(found, dict) else None
    return f' (device "{name}")' if isinstance(name, str) else ""


def _syntax_error(message: str, text: str, file: str) -> ConfigError:
    match = _SYNTAX_AT.match(message)
    if match is None:
        return ConfigError(message, file=file)
    if match[2] is None:
        line, column = line_column(text, len(text))
    else:
        line, column = int(match[2]), int(match[3])
    return ConfigError(match[1], file=file, line=line, column=column, hint="this is not valid TOML")


def _rejected(errors: list[ConfigError], source: str, text: str = "") -> LoadResult:
    return LoadResult(None, tuple(errors), source, text=text)
