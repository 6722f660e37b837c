"""The table of all sources. Importing it loads every codec; the settings alone are in ``settings``."""

from typing import Any, NamedTuple

from aoabridge.sources.frc import FrcSource
from aoabridge.sources.j519 import J519Source
from aoabridge.sources.settings import FrcSettings, J519Settings, TeleopSettings
from aoabridge.sources.teleop import TeleopSource

__all__ = ["SOURCES", "SourceKind"]


class SourceKind(NamedTuple):
    """One kind of source: its key below ``sources``, its settings, and the class: ``source(settings, bridge_name)``."""

    key: str
    settings: type[Any]
    source: type[Any]


SOURCES = (
    SourceKind("frc", FrcSettings, FrcSource),
    SourceKind("j519", J519Settings, J519Source),
    SourceKind("teleop", TeleopSettings, TeleopSource),
)
