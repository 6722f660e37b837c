"""The catalogue and the page are the issue table and nothing else."""

import re
import subprocess
from pathlib import Path

from aoabridge.issues import EVENTS, ISSUES, message_id
from aoabridge.status.troubleshooting import journal_catalog, troubleshooting_page

ROOT = Path(__file__).parents[3]


def test_the_shipped_files_are_made_from_the_table() -> None:
    assert (ROOT / "systemd/aoabridge.catalog").read_text() == journal_catalog()
    assert (ROOT / "docs/troubleshooting.md").read_text() == troubleshooting_page()


def test_every_code_and_event_has_one_entry() -> None:
    ids = re.findall(r"^-- ([0-9a-f]{32})$", journal_catalog(), re.MULTILINE)
    assert sorted(ids) == sorted(message_id(code) for code in (*ISSUES, *EVENTS))
    rows = re.findall(r"^\| `([a-z-]+)`", troubleshooting_page(), re.MULTILINE)
    assert rows == list(ISSUES)


def test_the_journal_accepts_the_catalogue(tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib/systemd/catalog"
    folder.mkdir(parents=True)
    (folder / "aoabridge.catalog").write_text(journal_catalog())
    (tmp_path / "var/lib/systemd/catalog").mkdir(parents=True)
    done = subprocess.run(
        ["journalctl", f"--root={tmp_path}", "--update-catalog"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "var/lib/systemd/catalog/database").stat().st_size > 0
