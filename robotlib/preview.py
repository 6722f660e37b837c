"""A plan as one self-contained SVG picture: the field, the way, a strip of times, actions and warnings."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from .model import FIELD_2026, Field, Node, PathNode, Plan, Pose2
from .pathfile import PathSource
from .timeline import Estimates, TimelineEntry

__all__ = ["svg"]

PX_PER_M = 50.0
MARGIN_PX = 30.0
ROW_PX = 16.0
COLOURS = {"PATH": "#7b3fa0", "POSE": "#1f6fb2", "ROUTE": "#1f8f6f", "ACTION": "#b2701f"}
OTHER_COLOUR = "#666666"
MAX_LABEL = 40  # of the visible text; the title has all of it
MAX_PATH_CHARS = 100_000
SHORT_PATH = 39

# Legal in Python strings, not in XML 1.0.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def svg(
    plan: Plan,
    field: Field = FIELD_2026,
    *,
    start: Pose2 | None = None,
    paths: PathSource | None = None,
    estimates: Estimates | None = None,
) -> str:
    """Return the picture as XML text; the same input gives the same bytes."""
    entries = plan.timeline(estimates or Estimates(), start, paths)
    width = field.length_m * PX_PER_M + 2 * MARGIN_PX
    field_px = field.width_m * PX_PER_M + 2 * MARGIN_PX
    nodes = list(plan.walk())
    strip = _strip(nodes, entries, field_px, width)
    notes = _notes(plan, field_px + 20 + ROW_PX * (len(strip) + 2))
    height = field_px + 40 + ROW_PX * (len(strip) + len(notes) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="11">',
        f"<title>{_text(plan.meta.name or 'RoboRoute plan')}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *_field(field),
        *_way(nodes, field, start, paths),
        *_poses(nodes, field),
        *strip,
        *notes,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    return escape(_ILLEGAL.sub("\ufffd", value))


def _attribute(value: str) -> str:
    return quoteattr(_ILLEGAL.sub("\ufffd", value))


def _x(metres: float) -> float:
    return MARGIN_PX + metres * PX_PER_M


def _y(metres: float, field: Field) -> float:
    return MARGIN_PX + (field.width_m - metres) * PX_PER_M


def _field(field: Field) -> list[str]:
    left, right, top, bottom = _x(0), _x(field.length_m), _y(field.width_m, field), _y(0, field)
    grid = [f"M{_x(m):.1f} {top:.1f}V{bottom:.1f}" for m in range(1, math.ceil(field.length_m))]
    grid += [f"M{left:.1f} {_y(m, field):.1f}H{right:.1f}" for m in range(1, math.ceil(field.width_m))]
    return [
        f'<path class="grid" d="{"".join(grid)}" stroke="#e4e4e4" fill="none"/>',
        f'<rect class="field" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" '
        'fill="none" stroke="#333333" stroke-width="2"/>',
        f'<path class="wall-blue" d="M{left:.1f} {top:.1f}V{bottom:.1f}" stroke="#1f4fd8" stroke-width="5"/>',
        f'<path class="wall-red" d="M{right:.1f} {top:.1f}V{bottom:.1f}" stroke="#d8261f" stroke-width="5"/>',
    ]


def _way(nodes: Sequence[Node], field: Field, start: Pose2 | None, paths: PathSource | None) -> list[str]:
    """Return the drive line; it is broken where a path without a file leaves the place unknown."""
    pieces: list[list[Pose2]] = [[start] if start is not None else []]
    for node in nodes:
        if isinstance(node, PathNode):
            points = _path_points(node, paths)
            if points:
                pieces.append(list(points))
            else:
                pieces.append([])
        else:
            pieces[-1].extend(node.targets)
    out: list[str] = []
    for piece in pieces:
        if len(piece) > 1:
            points_text = " ".join(f"{_x(pose.x):.1f},{_y(pose.y, field):.1f}" for pose in piece)
            out.append(f'<polyline class="way" points="{points_text}" fill="none" stroke="#1f6fb2" stroke-width="2"/>')
    return out


def _path_points(node: PathNode, paths: PathSource | None) -> Sequence[Pose2]:
    if paths is None:
        return ()
    try:
        return paths.load(node.name).points
    except (OSError, ValueError):
        return ()


def _poses(nodes: Sequence[Node], field: Field) -> list[str]:
    poses: list[Pose2] = []
    paths: list[str] = []
    for node in nodes:
        poses += node.targets
        single = f"{node.path}.pose"
        paths += [f"{node.path}.routePoses[{i}]" if node.type == "ROUTE" else single for i in range(len(node.targets))]
    numbered = enumerate(zip(poses, _shortened(paths), strict=True), 1)
    groups = [_pose(pose, path, number, field) for number, (pose, path) in numbered]
    return ['<g fill="#333333" stroke="#d87a1f" stroke-width="2">', *groups, "</g>"]


def _shortened(paths: Sequence[str]) -> Sequence[str]:
    """Return the paths, only their ends if together they would make the picture huge."""
    if sum(map(len, paths)) <= MAX_PATH_CHARS:
        return paths
    return ["\u2026" + path[-SHORT_PATH:] if len(path) > SHORT_PATH else path for path in paths]


def _pose(pose: Pose2, path: str, number: int, field: Field) -> str:
    x, y = _x(pose.x), _y(pose.y, field)
    ahead, up = 16 * math.cos(pose.rotation) + 0.0, -16 * math.sin(pose.rotation) + 0.0
    # A dot and an arrow in one path: with thousands of poses every byte counts.
    return (
        f'<g class="pose" data-path={_attribute(path)} data-x="{pose.x!r}" data-y="{pose.y!r}" '
        f'data-rotation="{pose.rotation!r}"><path d="M{x - 2:.0f} {y:.0f}h4M{x:.0f} {y:.0f}l{ahead:.0f} {up:.0f}"/>'
        f'<text x="{x + 4:.0f}" y="{y - 4:.0f}" stroke="none">{number}</text></g>'
    )


def _strip(nodes: Sequence[Node], entries: Sequence[TimelineEntry], top: float, width: float) -> list[str]:
    """Return one bar per leaf on a common time axis."""
    total = max(entries[0].end_s, 0.001)
    scale = (width - 2 * MARGIN_PX) / total
    bars: list[str] = []
    leaves = [(node, entry) for node, entry in zip(nodes, entries, strict=True) if not node.is_group]
    shown = _shortened([node.path for node, _ in leaves])
    for (node, entry), path in zip(leaves, shown, strict=True):
        x, y = MARGIN_PX + entry.start_s * scale, top + ROW_PX * len(bars)
        length = max((entry.end_s - entry.start_s) * scale, 1.0)
        colour = COLOURS.get(node.type, OTHER_COLOUR)
        shown_label = f"{node.type} {entry.label[:MAX_LABEL]}"
        what = f"{node.type} {entry.label}, {entry.start_s:.2f} to {entry.end_s:.2f} s ({entry.basis})"
        bars.append(
            f'<g class="step" data-path={_attribute(path)} data-type={_attribute(node.type)}>'
            f"<title>{_text(what)}</title>"
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{length:.1f}" height="{ROW_PX - 3:.1f}" fill="{colour}"/>'
            f'<text x="{min(x + 3, width - 200):.1f}" y="{y + 10:.1f}">{_text(shown_label)}</text></g>'
        )
    return bars


def _notes(plan: Plan, top: float) -> list[str]:
    actions = sorted({node.to_dict()["actionId"] for node in plan.leaves() if node.type == "ACTION"}, key=str)
    texts = [f"Actions: {', '.join(map(str, actions))}"] if actions else []
    texts += [f"{warning.path}: {warning.message} [{warning.code}]" for warning in plan.warnings]
    return [
        f'<text class="note" x="{MARGIN_PX:.1f}" y="{top + ROW_PX * row:.1f}">{_text(text)}</text>'
        for row, text in enumerate(texts)
    ]
