"""Sources: packets of other protocols as NetworkTables publications. Pure; the table SOURCES names all of them."""

from aoabridge.sources.base import Endpoint, Source, SourceStatus

__all__ = ["Endpoint", "Source", "SourceStatus"]
