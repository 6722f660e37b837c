from pathlib import Path

from aoabridge.adapters.update_marker import rolled_back_version


def test_no_marker_means_that_the_last_update_worked(tmp_path: Path) -> None:
    assert rolled_back_version(tmp_path / "1.4.0") is None


def test_the_marker_beside_the_tree_names_the_version_that_failed(tmp_path: Path) -> None:
    (tmp_path / "update-rolled-back").write_text("1.4.1\n")
    assert rolled_back_version(tmp_path / "current") == "1.4.1"


def test_an_empty_or_endless_marker_does_no_harm(tmp_path: Path) -> None:
    marker = tmp_path / "update-rolled-back"
    marker.write_bytes(b"")
    assert rolled_back_version(tmp_path / "current") is None
    marker.write_bytes(b"\xff" * 100_000)
    assert len(rolled_back_version(tmp_path / "current") or "") == 64
