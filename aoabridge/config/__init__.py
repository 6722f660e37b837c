"""The configuration file: typed, checked as a whole, compared for reloads."""

from aoabridge.config.diff import Change, changes, effective, log_line, restart_needed
from aoabridge.config.loader import LoadResult, default_config, default_name, load_config, parse_config, rendered
from aoabridge.config.sections import Config
from aoabridge.config.startup import DEFAULT_PATH, Flags, Startup, choose, with_flags

__all__ = [
    "DEFAULT_PATH",
    "Change",
    "Config",
    "Flags",
    "LoadResult",
    "Startup",
    "changes",
    "choose",
    "default_config",
    "default_name",
    "effective",
    "load_config",
    "log_line",
    "parse_config",
    "rendered",
    "restart_needed",
    "with_flags",
]
