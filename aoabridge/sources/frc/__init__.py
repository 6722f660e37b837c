"""The driver station protocols as a receive-only source; topics below ``/FRC/<name>/``."""

from aoabridge.sources.frc.replay import Replay
from aoabridge.sources.frc.source import FrcSource
from aoabridge.sources.settings import FrcSettings

__all__ = ["FrcSettings", "FrcSource", "Replay"]
