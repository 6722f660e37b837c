"""What the package's scripts leave when a new version could not be put in use and the old one goes on."""

import sys
from pathlib import Path

__all__ = ["rolled_back_version"]

MARKER = "update-rolled-back"
MAX_BYTES = 64  # a version


def rolled_back_version(tree: Path | None = None) -> str | None:
    """The version that failed; None = the last update worked. ``tree``: the environment that runs."""
    marker = (Path(sys.prefix) if tree is None else tree).parent / MARKER
    try:
        with marker.open("rb") as file:
            text = file.read(MAX_BYTES).decode("ascii", "replace").strip()
    except OSError:
        return None
    return text or None
