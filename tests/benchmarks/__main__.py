"""Benchmarks: `./run bench` runs all, `./run bench eager` one, `--threads 2` with two threads.

Each is a module beside this file with a function `run(threads)`; the first line of its docstring
says what it measures.
"""

import argparse
import importlib
import os
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(p.stem for p in HERE.glob("*.py") if p.stem not in ("__main__", "timing", "models"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], default=NAMES, metavar="NAME")
    parser.add_argument("--threads", type=int, default=1, help="for BLAS and every framework")
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)  # read when numpy, torch and paddle are loaded
    for name in options.names:
        importlib.import_module(f"tests.benchmarks.{name}").run(options.threads)


if __name__ == "__main__":
    main()
