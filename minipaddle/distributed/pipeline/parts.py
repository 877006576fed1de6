"""A part of a model as programs: its forward, and its backward or the two halves of it."""

from ...core.prelude import Recording, Tensor, current, slot, wrap
from ...engine.core.grad import TupleCotangent, fill_zeros
from ...engine.eager.backward import backward
from ...engine.ir.cut import needed, pruned, residuals_of
from ...engine.ir.program import ITEM, Program
from ...engine.jit.capture import CapturedOp
from ...jit import to_static


class Part:
    """Layers that a stage computes together, on one micro-batch after the other.

    `function` takes tensors and returns a tuple of tensors; it becomes a program. A forward keeps
    the values that the backward of the micro-batch needs.
    """

    def __init__(self, function):
        self.function = to_static(function)
        self.kept: dict[int, tuple] = {}
        self.halves: dict[object, tuple[Program, Program]] = {}

    def forward(self, micro_batch: int, inputs: list[Tensor]) -> list[Tensor]:
        """The results for a micro-batch."""
        starts = [detach(x) for x in inputs]
        results = [*self.function(*starts)]
        self.kept[micro_batch] = starts, results
        return results

    def backward(self, micro_batch: int, gradients: list[Tensor]) -> list[Tensor]:
        """The gradients of the inputs; weights get theirs added to `.grad`.

        gradients: of the differentiable results, in their order
        """
        starts, results = self.kept.pop(micro_batch)
        wanted = [y for y in results if not y.stop_gradient]
        if wanted:
            backward(wanted, gradients)
        return gradients_of(starts)

    def backward_inputs(self, micro_batch: int, gradients: list[Tensor]) -> list[Tensor]:
        """The first half of `backward`: the gradients that the stage before waits for."""
        record = record_of_results(self.kept[micro_batch][1])
        if record is None:  # computed eagerly: the tape has no halves
            return self.backward(micro_batch, gradients)
        starts, _ = self.kept.pop(micro_batch)
        captured = record.op.captured
        if captured not in self.halves:
            self.halves[captured] = split_weights(captured.backward, len(captured.walk.inputs))
        first, second = self.halves[captured]
        residuals, sizes, _ = record.saved
        pieces = TupleCotangent(enumerate(gradients))
        values = [*residuals, *(g.array for g in fill_zeros(record, pieces))]
        known = dict(zip(captured.backward.inputs, values, strict=True))
        outputs = run(captured, first, [known[r] for r in first.inputs], sizes)
        known |= dict(zip(first.outputs, outputs, strict=True))
        places = list(record.inputs)
        with Recording(False):
            for edge, array in zip(places, outputs[: len(captured.walk.inputs)]):
                edge.tensor().receive(wrap(array))
        late = [known[r] for r in second.inputs]
        self.kept[micro_batch] = captured, second, late, sizes, places[len(captured.walk.inputs) :]
        return gradients_of(starts)

    def backward_weights(self, micro_batch: int) -> None:
        """The second half: add the gradients of the weights to their `.grad`."""
        if micro_batch not in self.kept:
            return
        captured, second, arrays, sizes, edges = self.kept.pop(micro_batch)
        gradients = run(captured, second, arrays, sizes)
        with Recording(False):
            for edge, array in zip(edges, gradients, strict=True):
                edge.tensor().receive(wrap(array))


@slot("pipeline.split_weights")
def split_weights(backward: Program, inputs: int) -> tuple[Program, Program]:
    """(first, second): `backward` without the records that gradients of weights alone need; these.

    Its first outputs, `inputs` many, are the gradients of the inputs. `first` returns these, then
    the values that `second` needs of it; `second` takes these values, and returns the rest.
    """
    slopes, wanted = backward.outputs[:inputs], backward.outputs[inputs:]
    first = Program(f"{backward.name}_inputs", backward.inputs, [], backward.records, slopes)
    early = {*needed(first)}
    early |= {r for r in backward.records if r.op is ITEM and r.inputs[0] in early}
    late = [r for r in backward.records if r not in early]
    kept = residuals_of(late, backward, wanted)
    first.records = [r for r in backward.records if r in early]
    first.outputs = [*slopes, *(r for r in kept if r in early and r not in slopes)]
    return first, pruned(Program(f"{backward.name}_weights", kept, [], late, wanted))


def run(captured, program: Program, arrays: list, sizes: dict) -> list:
    """The outputs of a program, which on a mesh may stay partial sums."""
    terms = range(len(program.outputs))
    outputs, _ = current.top.quietly(captured.executables.run, program, arrays, dict(sizes), terms)
    return outputs


def record_of_results(results: list[Tensor]):
    """The tape's record of the captured function of these results; None if there is none."""
    for y in results:
        record = None if y.stop_gradient else y.record
        while record is not None and record.op.name == "item":
            record = record.inputs[0]
        if record is not None:
            return record if type(record.op) is CapturedOp else None
    return None


def detach(x: Tensor) -> Tensor:
    """A tensor with the same array and no tape."""
    copy = wrap(x.array)
    copy.stop_gradient = x.stop_gradient
    return copy


def gradients_of(starts: list[Tensor]) -> list[Tensor]:
    """The gradients of the differentiable inputs; zeros for inputs without one."""
    return [
        current.top.full(x.spec, 0, x) if x.grad is None else x.grad
        for x in starts
        if not x.stop_gradient
    ]
