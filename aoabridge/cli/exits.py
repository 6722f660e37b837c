"""Exit statuses, and the one exception that ends a command with one of them."""

from enum import IntEnum

__all__ = ["CommandError", "Exit"]


class Exit(IntEnum):
    """What a command says to the shell; the values from 64 on are those of sysexits."""

    OK = 0
    NEGATIVE = 1
    """Degraded, a check failed, a line failed, no data flowed."""
    NO_DAEMON = 2
    USAGE = 64
    NO_INPUT = 66
    NO_EXTRA = 69
    """An optional dependency is missing."""
    INTERNAL = 70
    CANNOT_CREATE = 73
    LOCKED = 75
    """Another instance runs."""
    PERMISSION = 77
    CONFIG = 78


class CommandError(Exception):
    """Ends the command: ``cure`` is the command or action that helps, shown on a line of its own."""

    def __init__(self, message: str, status: Exit, cure: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.cure = cure
