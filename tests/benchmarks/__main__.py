"""Benchmarks: `./run bench` runs all, `./run bench eager` one, `--threads 2` with two threads.

Each is a module beside this file with a function `run(threads, arguments)`; the first line of its
docstring says what it measures. `steps`, `against`, `collectives`, `products`, `memory`,
`sharding`, `serving`, `planner`, `inference` and `eager_operators` have options of their own:
`./run bench steps --help`.
"""

import argparse
import importlib
import os
import signal
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(p.stem for p in HERE.glob("*.py") if "\ndef run(" in p.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="./run bench", description=__doc__.split("\n")[0], add_help=False
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--threads", type=int, default=1, help="for BLAS and every framework")
    options, rest = parser.parse_known_args()
    for name in {*options.names}.difference(NAMES):
        parser.error(f"there is no benchmark {name!r}; there are {', '.join(NAMES)}")
    if rest and options.names not in (
        ["steps"],
        ["against"],
        ["collectives"],
        ["products"],
        ["memory"],
        ["sharding"],
        ["serving"],
        ["inference"],
        ["planner"],
        ["eager_operators"],
    ):  # with options of their own
        parser.print_help()
        sys.exit(0 if rest[0] in ("-h", "--help") else f"what is {' '.join(rest)}?")
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)  # read when numpy, torch and paddle are loaded
    report = importlib.import_module("minipaddle.codegen.products.blas").report
    print(f"This processor: {report()}\n")  # every figure depends on it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # then no worker stays behind
    for name in options.names or NAMES:
        importlib.import_module(f"tests.benchmarks.{name}").run(options.threads, rest)


if __name__ == "__main__":
    main()
