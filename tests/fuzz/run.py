"""Fuzzes everything that reads bytes of strangers.

    python tests/fuzz/run.py [--seconds N] [--seed S] [--keep] [NAME...]

NAME is a harness (``fuzz_NAME.py``: ``run(data)``, ``seeds()``), all by default. Coverage-guided with atheris if it
is installed (``pip install .[fuzz]``), else by mutation. An input that fails is written to ``tests/fuzz/findings``;
once it is cured it becomes a case in ``tests/fuzz/cases``. What a guided run found to reach new code is boiled down
with ``--keep`` to a small corpus in ``tests/fuzz/corpus`` (base64, one input a line). Every later run, also the short
one of the test suite, starts with seeds, corpus and cases.
"""

import argparse
import base64
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
KEPT = HERE / "corpus"
KEPT_INPUTS = 40  # of one harness: the tree stays small, and the short run of the suite reaches its mutations
KEPT_BYTES = 256  # of one input: what only a longer one reaches is found again within seconds from these
NAMES = sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.py"))
SLOW_S = 60  # of one input, for the guided fuzzer: beyond, it counts as hanging


def harness(name: str) -> ModuleType:
    """The module of one harness."""
    return importlib.import_module(f"fuzz.fuzz_{name}")


def corpus(name: str, module: ModuleType) -> list[bytes]:
    """What a run of this harness starts from: its seeds, its kept corpus and every case that once failed."""
    cases = sorted((CASES / name).glob("*")) if (CASES / name).is_dir() else []
    kept = KEPT / f"{name}.txt"
    lines = kept.read_text("ascii").split() if kept.exists() else []
    return [*module.seeds(), *map(base64.b64decode, lines), *(path.read_bytes() for path in cases)]


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


def boil_down(name: str, directory: str) -> None:
    """Keep the smallest inputs that together reach what the guided run reached."""
    with tempfile.TemporaryDirectory(prefix="aoabridge-fuzz-") as merged:
        options = ["-merge=1", f"-max_len={KEPT_BYTES}", "-verbosity=0", merged, directory]
        subprocess.run([sys.executable, str(HERE / "guided.py"), name, *options], capture_output=True, check=True)
        found = {path.read_bytes() for path in Path(merged).iterdir()} - set(harness(name).seeds())
    kept = sorted((data for data in found if 0 < len(data) <= KEPT_BYTES), key=lambda data: (len(data), data))
    # Evenly over the sizes: the shortest alone would only reach the first checks of a parser.
    step = max(1.0, len(kept) / KEPT_INPUTS)
    chosen = [kept[int(n * step)] for n in range(min(KEPT_INPUTS, len(kept)))]
    KEPT.mkdir(exist_ok=True)
    lines = (base64.b64encode(data).decode() + "\n" for data in chosen)
    (KEPT / f"{name}.txt").write_text("".join(lines), "ascii")


def guide(name: str, seconds: float, seed: int, keep_corpus: bool) -> bool:
    """Run atheris in a process of its own, which ends with its first finding."""
    FINDINGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="aoabridge-fuzz-") as directory:
        for number, data in enumerate(corpus(name, harness(name))):
            (Path(directory) / f"seed{number}").write_bytes(data)
        options = [f"-max_total_time={round(seconds)}", f"-seed={seed + 1}", f"-max_len={MAX_BYTES}", "-verbosity=0"]
        options += [f"-timeout={SLOW_S}", f"-artifact_prefix={FINDINGS}/{name}-", "-print_final_stats=1", directory]
        command = [sys.executable, str(HERE / "guided.py"), name, *options]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if keep_corpus and done.returncode == 0:
            boil_down(name, directory)
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
    parser.add_argument("--keep", action="store_true", help="renew the corpus in the tree (guided runs only)")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no harness {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    guided = importlib.util.find_spec("atheris") is not None
    if options.keep and not guided:
        parser.error("--keep needs atheris: .venv/bin/pip install -e '.[fuzz]'")
    results = [
        guide(name, options.seconds, options.seed, options.keep)
        if guided
        else mutate(name, options.seconds, options.seed)
        for name in options.names or NAMES
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
