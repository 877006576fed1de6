"""The costs of a model, read from its own program: kernels, messages, residuals.

The program is a training step of the model with one of its repeated blocks, traced on specs: no
weight is allocated. For tensor parallel `partition` cuts it, as it would run. All sizes are for a
batch of `prime` samples, a prime that divides no size of the model: sizes that it divides grow with
the batch, the others do not. So one trace gives the figures of any micro-batch.
"""

from contextlib import ExitStack, contextmanager
from math import prod
from typing import NamedTuple

from ...core.prelude import NUMPY, Spec, dt
from ...engine.ir.program import Program
from ...engine.passes.manager import optimized
from ...engine.passes.partition import partition
from ...engine.sharding.pieces import MeshView
from ...engine.sharding.placements import REPLICATE, ProcessMesh
from ...executors.gpu.gpu_program import GPU_PASSES
from ...jit.decorator import to_static
from ...nn import functional as F
from ...nn.layer.layers import Layer
from ...tensor.creation import zeros
from .counting import Counter, KeptValues, KernelCost, SentCollective, Size, scale
from .splitting import LayerBlocks, blocks_of, columns_and_rows, sequence_parallel

PASSES = GPU_PASSES | {"strip_products": False, "recompute": False}
"""Those of a GPU. But each product of attention is counted by itself, and what is computed again is
the planner's choice.
"""


class Tally(NamedTuple):
    """The figures of a rank of tensor parallel. `entry` is the input of a block; `weights`
    counts the rank's parameters by part.
    """

    ranks: int
    prime: int
    blocks: int
    kernels: list[KernelCost]
    sent: list[SentCollective]
    kept: dict[str, KeptValues]
    entry: Size
    weights: dict[str, int]

    def operations(self, batch: int, part: str) -> int:
        """Multiplications and additions of all products, forward and backward, each once."""
        products = (p for k in self.kernels if k.part == part and not k.again for p in k.products)
        return sum(2 * prod(scale(n, batch, self.prime) for n in p) for p in products)

    def joins(self, kernel: KernelCost) -> bool:
        """Whether a kernel multiplies values of one sample by each other, as attention does."""
        return any(b % self.prime == 0 for b, *_ in kernel.products)

    def list_attended(self, part: str) -> list[tuple[int, Size]]:
        """(tokens, size) of each matrix that attention reads completely in a forward, for any
        tokens of a rank: keys, and values.
        """
        used = (k for k in self.kernels if k.part == part and not k.backward and self.joins(k))
        width = self.entry.width
        return [(m, Size(b * n * d, width)) for k in used for b, m, n, d in k.products]


def next_token(model, tokens, labels):
    """The loss of a language model."""
    scores = model(tokens)
    return F.cross_entropy(scores.reshape([-1, scores.shape[-1]]), labels.reshape([-1]))


def squares(model, x, wanted):
    """The loss of other models; `wanted` has the size of the input, and is not used."""
    return (model(x) ** 2).mean()


def figures(
    model: Layer, sample, ranks: int = 1, loss=None, sequence: bool = True, half: bool = True
) -> Tally:
    """The figures of a model, one sample of whose batch is `sample`, on a number of ranks of
    tensor parallel.

    loss: a function (model, x, wanted), by default of the next token where x are whole numbers
    sequence: are values between the sharded parts sharded, too (sequence parallel)?
    half: do layers of float32 compute in half precision?

    >>> from minipaddle.distributed.planner import figures
    >>> from minipaddle.static import InputSpec
    >>> with paddle.LazyGuard():
    ...     net = paddle.text.GPT(50257, 12288, 96, 96, context=2048)
    >>> found = figures(net, InputSpec([2048], "int64"))
    >>> found.blocks, f"{found.blocks * found.weights['block'] / 1e9:.1f} billion"
    (96, '174.0 billion')
    """
    sample = Spec(tuple(sample.shape), dt.resolve(sample.dtype))
    loss = loss or (next_token if sample.dtype.kind in "iu" else squares)
    blocks = blocks_of(model)
    with ExitStack() as stack:
        stack.enter_context(fake_arrays(model))
        stack.enter_context(blocks.alone())
        prime = find_prime([sample.shape, *(p.spec.shape for p in model.parameters())])
        program = trace_step(model, sample, prime, loss)
        placements = columns_and_rows(program.program)
        if ranks > 1 and sequence:
            mesh = ProcessMesh([*range(ranks)], ["mp"])
            stack.enter_context(sequence_parallel(blocks, placements, mesh))
            program = trace_step(model, sample, prime, loss)
            placements = columns_and_rows(program.program)
        part = program.program
        if ranks > 1:
            part = partition_step(program, placements, ranks)
        part = optimized(part, until="fusion", **PASSES).program
        return count_figures(part, blocks, ranks, prime, half)


@contextmanager
def fake_arrays(model: Layer):
    """In the block give parameters without values arrays that take no memory."""
    missing = [p for p in model.parameters() if "array" not in vars(p)]
    try:
        for p in missing:
            shape, dtype = p.spec
            p.array = NUMPY.broadcast_to(NUMPY.zeros((), dtype), shape)
        yield
    finally:
        for p in missing:
            del p.array


def find_prime(shapes) -> int:
    """A prime that divides no size.

    >>> from minipaddle.distributed.planner.figures import find_prime
    >>> find_prime([(7, 11), (13,)])
    17
    """
    sizes = {n for shape in shapes for n in shape if n}
    primes = (p for p in range(7, 10**6, 2) if all(p % q for q in range(3, int(p**0.5) + 1, 2)))
    return next(p for p in primes if all(n % p for n in sizes))


def trace_step(model: Layer, sample: Spec, batch: int, loss):
    """The captured step of a model: loss and backward."""

    def step(x, wanted):
        value = loss(model, x, wanted)
        value.backward()
        return value

    x = zeros([batch, *sample.shape], sample.dtype)
    return to_static(step).capture_for((x, x), {})[0]


def partition_step(captured, placements: dict, ranks: int) -> Program:
    """The program of rank 0 of `ranks`."""
    program = captured.program
    view = MeshView(ProcessMesh([*range(ranks)], ["mp"]), (ranks,), (0,), (1,))
    placed = [(REPLICATE,)] * len(program.inputs)
    placed += [
        (placements.get(id(getattr(s.storage, "tensor", None)), REPLICATE),) for s in program.states
    ]
    decomposed = optimized(program, until="decompose").program
    return partition(decomposed, placed, view, captured.terms)[0]


def count_figures(
    program: Program, blocks: LayerBlocks, ranks: int, prime: int, half: bool
) -> Tally:
    """The figures of an optimised program."""
    counter = Counter(program, blocks, prime, half)
    return Tally(
        ranks,
        prime,
        blocks.count,
        [*counter.count_kernels()],
        [*counter.find_collectives()],
        counter.find_residuals(),
        counter.find_entry(),
        counter.count_weights(),
    )
