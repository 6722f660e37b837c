"""Counters to rates, for everything that is shown per second."""

__all__ = ["RateMeter"]

WINDOW_S = 1.0  # shorter windows flicker, longer ones hide a stop


class RateMeter:
    """Events per second over the last full window of each named counter."""

    def __init__(self) -> None:
        self._began: dict[str, tuple[float, int]] = {}
        self._hz: dict[str, float] = {}

    def note(self, name: str, total: int, now: float) -> float:
        """Take a counter's total; return its rate in Hz (0.0 until a window is full)."""
        began, first = self._began.setdefault(name, (now, total))
        if now - began >= WINDOW_S:
            self._hz[name] = (total - first) / (now - began)
            self._began[name] = (now, total)
        return self._hz.get(name, 0.0)

    def forget(self, name: str) -> None:
        """The counter is gone."""
        self._began.pop(name, None)
        self._hz.pop(name, None)
