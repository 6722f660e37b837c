"""The configuration file: typed, checked as a whole, compared for reloads."""

from aoabridge.config.diff import Change, changes, effective, log_line, restart_needed
from aoabridge.config.loader import LoadResult, default_config, default_name, load_config, parse_config, rendered
from aoabridge.config.sections import Config
from aoabridge.config.startup import (
    DEFAULT_PATH,
    DemoOptions,
    Flags,
    RunOptions,
    Startup,
    choose,
    config_path,
    last_good_path,
    state_directory,
    with_flags,
)

__all__ = [
    "DEFAULT_PATH",
    "Change",
    "Config",
    "DemoOptions",
    "Flags",
    "LoadResult",
    "RunOptions",
    "Startup",
    "changes",
    "choose",
    "config_path",
    "default_config",
    "default_name",
    "effective",
    "last_good_path",
    "load_config",
    "log_line",
    "parse_config",
    "rendered",
    "restart_needed",
    "state_directory",
    "with_flags",
]
