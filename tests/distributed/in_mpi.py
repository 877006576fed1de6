"""What the ranks of an MPI job run for the tests: `python -m tests.distributed.in_mpi NAME …`."""

import sys

import minipaddle.distributed as dist
from tests.distributed.conformance import conformance


def conforming():
    print(f"conforms: {conformance(dist.get_group(), dist.new_group)}", flush=True)


if __name__ == "__main__":
    dist.init_parallel_env()
    for name in sys.argv[1:]:
        globals()[name]()
