"""Makes recorded.jsonl.gz of a short campaign with long pauses: `python tests/faults/make_record.py`."""

import gzip
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from faults.campaign import Campaign  # noqa: E402 (below the path)
from faults.schedule import Fault  # noqa: E402

PAUSE_S = 7.0
KINDS = ["reload-good", "app-deaf", "unplug", "robot-restart", "robot-frozen", "daemon-killed", "clock-step"]


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "record.jsonl"
        campaign = Campaign(1, record=path)
        campaign.plan = iter([Fault(kind, "p1", 0.3, PAUSE_S, together=False, both=False) for kind in KINDS])
        campaign.run(5.0)
        assert campaign.judge.faults == [], campaign.judge.faults
        (HERE / "recorded.jsonl.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))


if __name__ == "__main__":
    main()
