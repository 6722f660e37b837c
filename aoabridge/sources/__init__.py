"""Sources: packets of other protocols as NetworkTables publications. Pure; the table SOURCES names all of them."""

from typing import Any, NamedTuple

from aoabridge.sources.base import Endpoint, Source, SourceIssue, SourceStatus
from aoabridge.sources.frc import FrcSource
from aoabridge.sources.j519 import J519Settings, J519Source
from aoabridge.sources.settings import FrcSettings, TeleopSettings
from aoabridge.sources.teleop import TeleopSource

__all__ = ["SOURCES", "Endpoint", "Source", "SourceIssue", "SourceKind", "SourceStatus"]


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
