"""Run every program on real Paddle and keep what it gave: `python -m tests.programs.record`.

Names of programs as arguments limit it to these.
"""

import sys

from tests.programs.common import SUBJECTS, programs
from tests.programs.outcome import load, plain, store


def main(wanted) -> None:
    import paddle

    found = {name: p for name, p in programs().items() if not wanted or name in wanted}
    for subject in SUBJECTS:
        mine = {n.partition(".")[2]: p for n, p in found.items() if n.startswith(subject + ".")}
        kept = load(subject) if wanted else {}
        kept |= {name: plain(program(paddle)) for name, program in mine.items()}
        if mine:
            store(subject, kept)
    print(f"{len(found)} programs on Paddle {paddle.__version__}")


if __name__ == "__main__":
    main(set(sys.argv[1:]))
