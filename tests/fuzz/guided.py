"""One harness under atheris: ``python guided.py NAME [libFuzzer options] CORPUS``; started by run.py."""

import importlib
import sys
from pathlib import Path

import atheris

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]


def main() -> None:
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["aoabridge", "robotlib", "fuzz"]):
        module = importlib.import_module(f"fuzz.fuzz_{name}")
    # libFuzzer starts itself again through a shell, by its first argument, when it merges a corpus.
    sys.argv[0] = f"{sys.executable} {Path(__file__).resolve()} {name}"
    atheris.Setup(sys.argv, module.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
