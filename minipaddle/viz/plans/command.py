"""`python -m minipaddle plan MODEL.py:NAME --cluster "8x8 H100" …`: how a job is laid out.

examples:
  python -m minipaddle plan gpt.py:Net --cluster "8x8 H100" --batch 512 --sample 2048:int64
  python -m minipaddle plan gpt.py:Net --cluster "12x8 A100" --batch 96 --sample 2048:int64 -o m.svg
"""

import argparse
import sys
from pathlib import Path

from ...distributed.planner import SearchLimits, describe, plan
from ...distributed.simulator import cluster_named
from ...jit.target import CommandError, build, load, read_spec
from ...nn.layer.layers import Layer
from ...nn.param_attr import LazyGuard
from . import plan_map


def main(arguments=None) -> int:
    """Run the command; returns the exit status (2 for a mistake of the user's)."""
    options = parser().parse_args(arguments)
    try:
        plan = search_plan(options)
    except (CommandError, ValueError) as error:
        own = [line for line in str(error).splitlines() if not line.startswith("  at: ")]
        print("\n".join([f"error: {own[0]}", *own[1:]]), file=sys.stderr)
        return 2
    print(describe(plan))
    if options.output:
        print(plan_map(plan, f"{options.target.rpartition(':')[2]} on {options.cluster}").save_as(
            Path(options.output)))  # fmt: skip
    else:
        print(f"\n{plan_map(plan).text}")
    return 0


def parser() -> argparse.ArgumentParser:
    one = argparse.ArgumentParser(
        prog="python -m minipaddle plan",
        description="Find the best layout of a training job on a cluster; nothing is computed.",
        epilog=__doc__.partition("\n\n")[2], formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = one.add_argument
    add("target", help="FILE.py:NAME, a class or function that builds the model, or a model made "
        "under paddle.LazyGuard()")  # fmt: skip
    add("--cluster", required=True, help='machines x devices and their name: "8x8 H100"')
    add("--batch", type=int, required=True, help="samples of a step")
    add("--sample", required=True, metavar="SHAPE[:DTYPE]", help="of one sample: 2048:int64")
    add("--model", type=int, default=8, help="the most ranks of tensor parallel (8)")
    add("--sep", type=int, default=8, help="the most ranks that share a sequence (8)")
    add("-o", "--output", help="a file for the map of meshes: .svg, .png, .pdf")
    return one


def search_plan(options):
    """The plan for the options."""
    file, _, name = options.target.rpartition(":")
    with LazyGuard():
        model = build(load(file, name), name)
    if not isinstance(model, Layer):
        kind = type(model).__name__
        raise CommandError(f"{name} is a {kind}; expected a layer, or what builds one")
    sample = read_spec(options.sample)
    limits = SearchLimits(model=options.model, sep=options.sep)
    return plan(model, sample, *cluster_named(options.cluster), options.batch, limits=limits)
