"""Fuzzes everything that reads bytes of strangers.

    python tests/fuzz/run.py [--seconds N] [--seed S] [NAME...]

NAME is a harness (``fuzz_NAME.py``: ``run(data)``, ``seeds()``), all by default. Coverage-guided with atheris if it
is installed (``pip install .[fuzz]``), else by mutation. An input that fails is written to ``tests/fuzz/findings``;
once it is cured it becomes a case in ``tests/fuzz/cases``, which every later run starts with.
"""

import argparse
import hashlib
import importlib
import importlib.util
import random
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from fuzz.mutation import MAX_BYTES, inputs  # noqa: E402 (below the path)

FINDINGS = HERE / "findings"
CASES = HERE / "cases"
NAMES = sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.py"))
SLOW_S = 60  # of one input, for the guided fuzzer: beyond, it counts as hanging


def harness(name: str) -> ModuleType:
    """The module of one harness."""
    return importlib.import_module(f"fuzz.fuzz_{name}")


def corpus(name: str, module: ModuleType) -> list[bytes]:
    """What a run of this harness starts from: its seeds and every case that once failed."""
    cases = sorted((CASES / name).glob("*")) if (CASES / name).is_dir() else []
    return [*module.seeds(), *(path.read_bytes() for path in cases)]


def keep(name: str, data: bytes) -> Path:
    """Write an input that failed."""
    FINDINGS.mkdir(exist_ok=True)
    path = FINDINGS / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


def mutate(name: str, seconds: float, seed: int) -> bool:
    """Try mutations for a while; False after the first one that fails."""
    module = harness(name)
    began, count = time.monotonic(), 0
    for data in inputs(corpus(name, module), random.Random(seed)):
        try:
            module.run(data)
        except Exception:  # noqa: BLE001 (whatever comes out is the finding)
            traceback.print_exc()
            print(f"{name}: FAILED after {count} inputs: {keep(name, data)}", flush=True)
            return False
        count += 1
        if time.monotonic() - began > seconds:
            break
    print(f"{name}: {count} inputs by mutation, no finding", flush=True)
    return True


def guide(name: str, seconds: float, seed: int) -> bool:
    """Run atheris in a process of its own, which ends with its first finding."""
    FINDINGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="aoabridge-fuzz-") as directory:
        for number, data in enumerate(corpus(name, harness(name))):
            (Path(directory) / f"seed{number}").write_bytes(data)
        options = [f"-max_total_time={round(seconds)}", f"-seed={seed + 1}", f"-max_len={MAX_BYTES}", "-verbosity=0"]
        options += [f"-timeout={SLOW_S}", f"-artifact_prefix={FINDINGS}/{name}-", "-print_final_stats=1", directory]
        command = [sys.executable, str(HERE / "guided.py"), name, *options]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-4000:], f"{name}: FAILED, see {FINDINGS}", sep="\n", flush=True)
        return False
    count = next((line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line), "?")
    print(f"{name}: {count} inputs guided by coverage, no finding", flush=True)
    return True


def main(arguments: list[str]) -> int:
    """Run the harnesses one after the other."""
    parser = argparse.ArgumentParser(prog="./dev fuzz")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=float, default=20.0, help="for each harness (default 20)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no harness {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    one = guide if importlib.util.find_spec("atheris") else mutate
    results = [one(name, options.seconds, options.seed) for name in options.names or NAMES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
