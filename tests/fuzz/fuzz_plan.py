"""Fuzz target for plan texts: any bytes give a plan that round-trips, or a PlanError of the table, quickly."""

import json
import time
from pathlib import Path

from robotlib import Limits, PlanError, parse
from robotlib.errors import PARSE_CODES, clean
from robotlib.extensions import EXTENSIONS

VECTORS = Path(__file__).parents[1] / "vectors" / "plan_cases.json"
FOUND = (b'{"type":"sequenw\xef\x86\x94ce","children":[]}',)  # a character for private use is no invisible one
MAX_S = 0.25  # five times the promise for 64 KiB: a fuzzer's own instrumentation costs, too


def run(data: bytes) -> None:
    """Parse the bytes; AssertionError if a promise is broken."""
    begin = time.process_time()
    try:
        plan = parse(data, extra_types=EXTENSIONS)
    except PlanError as error:
        assert error.code in PARSE_CODES
        assert clean(error.message, len(error.message)) == error.message
        assert 10 <= len(error.message) <= 120
    else:
        text = plan.dump()
        roomy = Limits(max_bytes=10 * Limits().max_bytes)  # numbers in full may take more room than they came in
        again = parse(text, roomy, extra_types=EXTENSIONS)
        assert again == plan
        assert again.dump() == text
    assert time.process_time() - begin < MAX_S


def seeds() -> list[bytes]:
    """The shared cases and a few hostile texts."""
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))
    texts = [case["plan_json"].encode("utf-8", "surrogatepass") for case in cases]
    return [
        *texts,
        b'"' + b'\\"' * 30000,
        b"[" * 60000,
        b'"' * 60000,
        b"\xff\xfe",
        b'{"type":"WAIT","seconds":1}',
        *FOUND,
    ]
