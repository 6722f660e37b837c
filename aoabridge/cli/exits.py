"""The one exception that ends a command with an exit status."""

from aoabridge.exits import Exit

__all__ = ["CommandError", "Exit"]


class CommandError(Exception):
    """Ends the command: ``cure`` is the command or action that helps, shown on a line of its own."""

    def __init__(self, message: str, status: Exit, cure: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.cure = cure
