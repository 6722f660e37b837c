"""Exit statuses of every command, the daemon's included; imports nothing of ours."""

from enum import IntEnum

__all__ = ["Exit"]


class Exit(IntEnum):
    """What a process says to the shell and to the service manager; the values from 64 on are those of sysexits."""

    OK = 0
    NEGATIVE = 1
    """Degraded, a check failed, a line failed, no data flowed."""
    NO_DAEMON = 2
    USAGE = 64
    NO_INPUT = 66
    INTERNAL = 70
    CANNOT_CREATE = 73
    LOCKED = 75
    """Another instance runs."""
    PERMISSION = 77
    CONFIG = 78
