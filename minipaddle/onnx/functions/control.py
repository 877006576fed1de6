"""Control flow of ONNX: If, Loop, Scan."""

from functools import partial

import numpy

from ...core.prelude import Dim, Tensor, creation, current, dt, movement
from ...engine.eager.control_flow import cond, while_loop
from ...engine.jit.effects import check_held
from ..reading import DamagedFile
from ..table import FUNCTIONS, OnnxNode, UnreadableNode, apply, number, tensor


def truth(x):
    """A condition: a boolean that is known, or a tensor."""
    return bool(numpy.asarray(x).reshape(())) if isinstance(x, numpy.ndarray) else x


def if_(condition, *, then_branch, else_branch, node: OnnxNode):
    """A `cond`. Where one of the branches cannot be read (of sizes that another input has, say),
    the other one, and a run that would take the first raises ValueError.
    """
    condition, branches = truth(condition), (then_branch, else_branch)
    if isinstance(condition, bool):
        return node.reading.graph(branches[not condition])
    tracer, failed = current.top, {}
    before = tracer.refusal, [*tracer.root.program.guards]

    def read(k: int):
        try:
            return [*map(tensor, node.reading.graph(branches[k]))]
        except ValueError as error:
            failed[k] = error
            raise

    try:
        return cond(condition, partial(read, 0), partial(read, 1))
    except ValueError as error:
        if isinstance(error, DamagedFile) or not failed:
            raise
    tracer.refusal, tracer.root.program.guards[:] = before  # of the branch that was given up
    (k,) = failed
    results = node.reading.graph(branches[1 - k])
    held = apply("logical_not", condition) if k == 0 else condition
    text = f"this run takes a branch that could not be read when the file was: {failed[k]}"
    check_held(as_truth(held), text, ValueError)
    return results


def loop(most=None, condition=None, *carried, body, node: OnnxNode):
    """A `while_loop`; with results for each iteration, or for a few known ones, one by one."""
    count = len(carried)
    scans = len(body.output) - 1 - count
    limit = None if most is None else number(most) if isinstance(most, numpy.ndarray) else most
    condition = True if condition is None else truth(condition)
    always = condition is True and not stays_open(body)
    if isinstance(limit, int | float) and (scans or limit <= FEW) and always and limit <= MOST:
        return unroll(node, int(limit), carried, body, scans)
    if scans:
        raise UnreadableNode("its results of each iteration are of a number that is not known")
    if condition is False:
        return list(carried)
    first = [creation.full(shape=(), value=0, dtype=dt.int64.numpy), as_truth(condition)]

    def test(k, going, *_):
        return going if limit is None else going & (k < limit)

    def step(k, going, *now):
        going, *after = node.reading.graph(body, [k, going, *now])
        return [k + 1, as_truth(truth(going)), *map(tensor, after)]

    initial = [creation.assign(tensor(x)) for x in carried]
    return while_loop(test, step, [*first, *initial])[2:]


FEW, MOST = 8, 512
"""Most iterations that are unrolled: without results of each iteration, and with them."""


def as_truth(x) -> Tensor:
    if isinstance(x, bool):
        return creation.full(shape=(), value=x, dtype=dt.bool_.numpy)
    return movement.reshape(tensor(x).astype("bool"), shape=())


def stays_open(body) -> bool:
    """Whether the body of a loop computes whether to go on."""
    name = body.output[0].name
    makers = {n: x for x in body.node for n in x.output}
    while name in makers and makers[name].op_type in ("Identity", "Cast"):
        name = makers[name].input[0]
    constant = name in makers and makers[name].op_type == "Constant"
    return name != body.input[1].name and not constant and name not in {
        t.name for t in body.initializer}  # fmt: skip


def unroll(node: OnnxNode, count: int, carried, body, scans: int) -> list:
    now, stacks = list(carried), [[] for _ in range(scans)]
    for k in range(count):
        _, *after = node.reading.graph(body, [numpy.int64(k).reshape(()), numpy.array(True), *now])
        now = after[: len(now)]
        for each, x in zip(stacks, after[len(now) :], strict=True):
            each.append(tensor(x))
    if scans and not count:
        raise UnreadableNode("it has results of each iteration, and no iteration")
    return [*now, *(movement.stack(*each, axis=0) for each in stacks)]


def scan(*inputs, body, num_scan_inputs, scan_input_axes=None, scan_output_axes=None,
         scan_input_directions=None, scan_output_directions=None, node: OnnxNode):  # fmt: skip
    """Iterations over slices, written one after the other."""
    plain_ways = (scan_input_axes, scan_output_axes, scan_input_directions, scan_output_directions)
    if node.opset < 9 or any(any(way or ()) for way in plain_ways):
        raise UnreadableNode("it runs along another axis than the first, or backwards")
    carried, over = list(inputs[:-num_scan_inputs]), [*map(tensor, inputs[-num_scan_inputs:])]
    count = over[0].spec.shape[0]
    if isinstance(count, Dim) or not 0 < count <= MOST:
        raise UnreadableNode(f"it runs for {count} steps")
    outs = []
    for k in range(count):
        parts = [movement.slice_(x, index=(k,)) for x in over]
        results = node.reading.graph(body, [*carried, *parts])
        carried = results[: len(carried)]
        outs.append([*map(tensor, results[len(carried) :])])
    return [*carried, *(movement.stack(*each, axis=0) for each in zip(*outs, strict=True))]


CONTROL = {"If": if_, "Loop": loop, "Scan": scan}
"""Operators with subgraphs."""
FUNCTIONS |= CONTROL
