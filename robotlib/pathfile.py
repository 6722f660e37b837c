"""Path files (version 2025.x) and the navigation grid of the robot's deploy folder: length, points, end, obstacles."""

from __future__ import annotations

import bisect
import itertools
import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .model import Field, Pose2

__all__ = ["NavGrid", "PathFile", "PathFolder", "PathSource", "read_navgrid", "read_path"]

SPACING_M = 0.1  # between the points that are driven
_CURVE_STEPS = 64  # per Bezier segment, to measure its length
MAX_FILE_BYTES = 4 << 20  # a grid of 3 cm cells on a whole field stays below


@dataclass(frozen=True, slots=True)
class PathFile:
    """One path: `points` are SPACING_M apart and end at the last anchor; limits in m/s, m/s^2, rad/s, rad/s^2."""

    name: str
    points: tuple[Pose2, ...]
    length_m: float
    max_speed_mps: float
    max_accel_mps2: float
    max_omega_radps: float
    max_alpha_radps2: float
    end_speed_mps: float
    has_markers: bool

    @property
    def start(self) -> Pose2:
        """The first point."""
        return self.points[0]

    @property
    def end(self) -> Pose2:
        """The last point."""
        return self.points[-1]

    def flipped(self, on: Field) -> tuple[Pose2, ...]:
        """Return the points as the red alliance drives them."""
        return tuple(point.flipped(on) for point in self.points)


class PathSource(Protocol):
    """Where path files come from."""

    @abstractmethod
    def load(self, name: str) -> PathFile:
        """Return the path; OSError if there is none, ValueError if it is not readable."""

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Return the known names, sorted."""

    @abstractmethod
    def navgrid(self) -> NavGrid | None:
        """Return the grid of obstacles, None if there is none."""


@dataclass(frozen=True, slots=True)
class NavGrid:
    """Cells of `cell_m`; `rows[row][column]` true is an obstacle."""

    cell_m: float
    rows: tuple[tuple[bool, ...], ...]

    def blocked(self, pose: Pose2) -> bool:
        """Return True if the pose lies in an obstacle; outside of the grid nothing is known."""
        row, column = math.floor(pose.y / self.cell_m), math.floor(pose.x / self.cell_m)
        return 0 <= row < len(self.rows) and 0 <= column < len(self.rows[row]) and self.rows[row][column]


class PathFolder:
    """The path files of a folder: the folder itself, its `paths`, or a deploy folder's `pathplanner/paths`."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._cache: dict[str, tuple[int, PathFile]] = {}

    def _places(self) -> tuple[Path, ...]:
        return (self.folder, self.folder / "paths", self.folder / "pathplanner" / "paths")

    def load(self, name: str) -> PathFile:
        """Return the path; read again only if the file changed."""
        for place in self._places():
            file = place / f"{name}.path"
            try:
                stamp = file.stat().st_mtime_ns
            except OSError:
                continue
            known = self._cache.get(name)
            if known is None or known[0] != stamp:
                known = self._cache[name] = (stamp, read_path(name, _read(file)))
            return known[1]
        raise FileNotFoundError(name)

    def names(self) -> tuple[str, ...]:
        """Return the names of all path files, sorted."""
        found: set[str] = set()
        for place in self._places():
            try:
                found.update(file.stem for file in place.iterdir() if file.suffix == ".path")
            except OSError:
                continue
        return tuple(sorted(found))

    def navgrid(self) -> NavGrid | None:
        """Return the grid, None if the file is missing or not readable."""
        for place in (self.folder, self.folder / "pathplanner", self.folder.parent):
            try:
                return read_navgrid(_read(place / "navgrid.json"))
            except (OSError, ValueError):
                continue
        return None


def _read(file: Path) -> bytes:
    with file.open("rb") as stream:
        data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"{file.name} is too large")
    return data


def read_navgrid(data: bytes) -> NavGrid:
    """Return the grid of a navgrid.json; ValueError if it is none."""
    try:
        obj = json.loads(data)
        cell = float(obj["nodeSizeMeters"])
        rows = tuple(tuple(bool(cell) for cell in row) for row in obj["grid"])
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not a navigation grid: {error}") from error
    if not (math.isfinite(cell) and cell > 0):
        raise ValueError("not a navigation grid: no cell size")
    return NavGrid(cell, rows)


def read_path(name: str, data: bytes) -> PathFile:
    """Return the path of a .path file; ValueError if it is none."""
    try:
        path = _build(name, json.loads(data))
    except (KeyError, TypeError, IndexError, OverflowError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a path file: {type(error).__name__} {error}") from error
    numbers = (path.max_speed_mps, path.max_accel_mps2, path.max_omega_radps, path.max_alpha_radps2)
    if not all(math.isfinite(value) and value > 0 for value in numbers):
        raise ValueError("the limits of the path file are not positive numbers")
    if not all(math.isfinite(value) for point in path.points for value in (point.x, point.y, point.rotation)):
        raise ValueError("the path file holds a coordinate that is not a number")
    return path


def _build(name: str, obj: Mapping[str, Any]) -> PathFile:
    waypoints = obj["waypoints"]
    if len(waypoints) < 2:
        raise ValueError("a path needs two waypoints")
    curve = _curve(waypoints)
    lengths = [0.0]
    for (_, x, y), (_, next_x, next_y) in itertools.pairwise(curve):
        lengths.append(lengths[-1] + math.hypot(next_x - x, next_y - y))
    if not math.isfinite(lengths[-1]) or lengths[-1] > 1000.0:
        raise ValueError("the path is longer than any field")
    limits = obj["globalConstraints"]
    goal = obj["goalEndState"]
    headings = _headings(obj, len(waypoints) - 1)
    return PathFile(
        name=name,
        points=tuple(_points(curve, lengths, headings)),
        length_m=lengths[-1],
        max_speed_mps=float(limits["maxVelocity"]),
        max_accel_mps2=float(limits["maxAcceleration"]),
        max_omega_radps=math.radians(limits["maxAngularVelocity"]),
        max_alpha_radps2=math.radians(limits["maxAngularAcceleration"]),
        end_speed_mps=float(goal["velocity"]),
        has_markers=bool(obj.get("eventMarkers")),
    )


def _curve(waypoints: Sequence[Mapping[str, Any]]) -> list[tuple[float, float, float]]:
    """Return (waypoint position, x, y) along the Bezier segments."""
    curve: list[tuple[float, float, float]] = []
    for index, (first, last) in enumerate(itertools.pairwise(waypoints)):
        corners = [_xy(first["anchor"]), _xy(first["nextControl"]), _xy(last["prevControl"]), _xy(last["anchor"])]
        for step in range(1 if curve else 0, _CURVE_STEPS + 1):
            t = step / _CURVE_STEPS
            u = 1.0 - t
            weights = (u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t)
            x = sum(weight * corner[0] for weight, corner in zip(weights, corners, strict=True))
            y = sum(weight * corner[1] for weight, corner in zip(weights, corners, strict=True))
            curve.append((index + t, x, y))
    return curve


def _xy(point: Mapping[str, Any]) -> tuple[float, float]:
    return float(point["x"]), float(point["y"])


def _headings(obj: Mapping[str, Any], last: int) -> list[tuple[float, float]]:
    """Return (waypoint position, rotation in radians), sorted; the goal's rotation is the last."""
    ideal = obj.get("idealStartingState")
    found = [(0.0, math.radians(ideal["rotation"]))] if ideal else []
    for target in obj.get("rotationTargets") or ():
        found.append((float(target["waypointRelativePos"]), math.radians(target["rotationDegrees"])))
    return [*sorted(found), (float(last), math.radians(obj["goalEndState"]["rotation"]))]


def _heading_at(position: float, headings: Sequence[tuple[float, float]]) -> float:
    after = bisect.bisect_left(headings, (position,))
    if after == 0 or after == len(headings):
        angle = headings[min(after, len(headings) - 1)][1]
    else:
        (start, first), (end, last) = headings[after - 1], headings[after]
        share = (position - start) / (end - start) if end > start else 1.0
        angle = first + share * math.remainder(last - first, 2 * math.pi)
    return math.remainder(angle, 2 * math.pi)


def _points(
    curve: Sequence[tuple[float, float, float]], lengths: Sequence[float], headings: Sequence[tuple[float, float]]
) -> list[Pose2]:
    count = max(1, round(lengths[-1] / SPACING_M))
    points: list[Pose2] = []
    index = 0
    for number in range(count + 1):
        want = lengths[-1] * number / count
        while index < len(lengths) - 2 and lengths[index + 1] < want:
            index += 1
        span = lengths[index + 1] - lengths[index]
        share = (want - lengths[index]) / span if span > 0.0 else 1.0
        at, x, y = (a + share * (b - a) for a, b in zip(curve[index], curve[index + 1], strict=True))
        points.append(Pose2(x, y, _heading_at(at, headings)))
    return points
