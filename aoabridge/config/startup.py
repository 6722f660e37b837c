"""Which configuration a starting daemon uses: the file, what the command line adds, or the last one that worked."""

import os
from pathlib import Path

import msgspec

from aoabridge.config.kinds import Fault
from aoabridge.config.loader import LoadResult, default_config, load_config
from aoabridge.config.schema import ROOT, Key, Table
from aoabridge.config.sections import Config
from aoabridge.errors import ConfigError

__all__ = [
    "DEFAULT_PATH",
    "DemoOptions",
    "Flags",
    "RunOptions",
    "Startup",
    "choose",
    "config_path",
    "last_good_path",
    "state_directory",
    "with_flags",
]

DEFAULT_PATH = Path("/etc/aoabridge/aoabridge.toml")
SYSTEM_STATE = Path("/var/lib/aoabridge")


def config_path(given: str | None) -> Path:
    """The file to use: the one given, $AOABRIDGE_CONFIG, or the system's."""
    return Path(given or os.environ.get("AOABRIDGE_CONFIG") or DEFAULT_PATH)


def state_directory() -> Path | None:
    """Where state is kept: what the service manager made, or the system's if we may write there; None = nowhere."""
    if made := os.environ.get("STATE_DIRECTORY"):
        return Path(made.split(":")[0])
    return SYSTEM_STATE if os.access(SYSTEM_STATE, os.W_OK | os.X_OK) else None


def last_good_path() -> Path | None:
    """The copy of the last file that worked, if state is kept anywhere."""
    directory = state_directory()
    return None if directory is None else directory / "last-good.toml"


class Flags(msgspec.Struct, frozen=True):
    """What the command line of ``run`` says over the file; None = nothing."""

    team: int | None = None
    server: str | None = None
    log_level: str | None = None
    simulate: int = 0
    """Phones to simulate inside the daemon."""

    def keys(self) -> dict[str, object]:
        """Dotted key -> value in the form of the file."""
        found = {"nt.team": self.team, "nt.server": self.server, "log.level": self.log_level}
        return {key: value for key, value in found.items() if value is not None}


NO_FLAGS = Flags()


class RunOptions(msgspec.Struct, frozen=True):
    """What ``aoabridge run`` was told; ``socket`` None = the first path that can be made."""

    path: Path
    last_good: Path | None
    flags: Flags = NO_FLAGS
    socket: Path | None = None
    json: bool = False
    quiet: bool = False
    verbose: int = 0


class DemoOptions(msgspec.Struct, frozen=True):
    """What ``aoabridge demo`` was told; ``seconds`` None = until Ctrl-C, ``web`` None = any free port."""

    seconds: float | None = None
    phones: int = 1
    topics: int = 300
    rate_hz: float = 50.0
    web: int | None = None
    json: bool = False
    live: bool = False
    """A person looks at a terminal: one live view instead of a line per second."""
    verbose: int = 0


class Startup(msgspec.Struct, frozen=True):
    """The configuration to run with and how it was found.

    ``state``: "ok", "last-good" (the file is refused) or "rejected" (neither is usable: relay off, page up).
    ``errors`` are those of the file.
    """

    config: Config
    state: str
    errors: tuple[ConfigError, ...]
    loaded: LoadResult

    @property
    def relay_allowed(self) -> bool:
        """False: nothing may reach USB or NetworkTables."""
        return self.state != "rejected"


def with_flags(config: Config, flags: Flags) -> Config:
    """The configuration with the command line applied; a given team or server replaces every other target.

    Raises ConfigError for a value that the file could not hold either.
    """
    values = {key: _checked(key, value) for key, value in flags.keys().items()}
    if "log.level" in values:
        config = msgspec.structs.replace(config, log=msgspec.structs.replace(config.log, level=values["log.level"]))
    if "nt.team" in values or "nt.server" in values:
        nt = msgspec.structs.replace(
            config.nt, team=values.get("nt.team"), server=values.get("nt.server", ()), embedded=False
        )
        config = msgspec.structs.replace(config, nt=nt)
    if flags.simulate:
        config = msgspec.structs.replace(config, devices=msgspec.structs.replace(config.devices, simulated=True))
    return config


def _checked(key: str, value: object) -> object:
    table: Table | Key = ROOT
    for part in key.split("."):
        assert isinstance(table, Table)
        table = next(row for row in table.rows if row.name == part)
    assert isinstance(table, Key)
    checked = table.kind.check(value)
    if isinstance(checked, Fault):
        raise ConfigError(checked.message, key=key, hint=checked.hint)
    return checked


def choose(path: Path, last_good: Path | None, flags: Flags = NO_FLAGS, *, host: str | None = None) -> Startup:
    """Load the file; if it is refused, the last good one; if there is none, defaults with the relay off.

    Raises ConfigError only for a bad flag.
    """
    loaded = load_config(path, host=host)
    if loaded.config is not None:
        return Startup(with_flags(loaded.config, flags), "ok", (), loaded)
    if last_good is not None:
        kept = load_config(last_good, host=host)
        if kept.config is not None and kept.source != "defaults":
            return Startup(with_flags(kept.config, flags), "last-good", loaded.errors, kept)
    return Startup(with_flags(default_config(host), flags), "rejected", loaded.errors, loaded)
