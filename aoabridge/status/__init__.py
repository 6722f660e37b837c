"""The one snapshot of everything an operator may ask, and its renderings. Pure."""

from aoabridge.status.board import Edge, IssueBoard, OpenIssue
from aoabridge.status.snapshot import build_snapshot
from aoabridge.status.views import (
    ConfigView,
    HostView,
    PhoneView,
    RecordView,
    RelayView,
    RobotView,
    SnapshotInputs,
    SourceView,
)

__all__ = [
    "ConfigView",
    "Edge",
    "HostView",
    "IssueBoard",
    "OpenIssue",
    "PhoneView",
    "RecordView",
    "RelayView",
    "RobotView",
    "SnapshotInputs",
    "SourceView",
    "build_snapshot",
]
