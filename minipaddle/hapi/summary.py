"""`paddle.summary`: a table of a network's layers, the shapes between them and their parameters."""

from dataclasses import dataclass
from numbers import Integral

from ..core.prelude import Recording, Tensor, value_error
from ..engine.jit.tree import flatten
from ..nn.layer.container import LayerList, Sequential
from ..nn.layer.rnn import Stacked
from ..tensor import creation

__all__ = ["summary"]

MEGABYTE = 2**20


@dataclass
class LayerRow:
    """One layer, as it was when it was last called."""

    layer: str
    inputs: str
    outputs: str
    parameters: int
    output_bytes: int

    def cells(self) -> tuple[str, str, str, str]:
        return self.layer, self.inputs, self.outputs, f"{self.parameters:,}"


def summary(net, input_size=None, dtypes=None, input=None):
    """Print the input and output shapes of each layer; return the numbers of parameters.

    The network runs once, in evaluation mode, on `input` (passed as it is) or on made-up tensors:
    `input_size` is a shape, or a list of shapes for several inputs, with a batch of 1 where a size
    is None or -1; `dtypes` is one dtype or one for each input, float32 if absent. Returns
    {"total_params", "trainable_params"}, which count every parameter of `net` once; Paddle's counts
    leave out what the network itself holds beside its layers, and count shared parameters again.

    >>> counts = paddle.summary(paddle.nn.Sequential(paddle.nn.Linear(4, 3)), (1, 4))
    ... # doctest: +ELLIPSIS
    -------...
     Layer (type)       Input Shape          Output Shape         Param #
    =======...
       Linear-...           [[1, 4]]              [1, 3]              15
    =======...
    Total params: 15
    Trainable params: 15
    Non-trainable params: 0
    -------...
    Input size (MB): 0.00
    Forward/backward pass size (MB): 0.00
    Params size (MB): 0.00
    Estimated Total Size (MB): 0.00
    -------...
    <BLANKLINE>
    >>> counts
    {'total_params': 15, 'trainable_params': 15}
    """
    inputs = sample_inputs(input_size, dtypes) if input is None else [input]
    rows = {}

    def note(layer, given, result):
        name = f"{type(layer).__name__}-{int(layer.full_name().rpartition('_')[2]) + 1}"
        own = sum(p.size for p in layer._parameters.values() if p is not None)
        rows[layer] = LayerRow(name, str(shapes(given)), str(shapes(result)), own, size_of(result))

    trial_run(net, layers_with_rows(net), note, inputs)
    print(report(net, list(rows.values()), size_of(inputs)))
    every = net.parameters()
    return {"total_params": count(every), "trainable_params": count(trainable(every))}


def layers_with_rows(layer, outermost: bool = True):
    """The layers that get a row: not mere containers, nor the network itself, nor cells of an RNN.

    A network that is a single layer gets its row.
    """
    single = isinstance(layer, Stacked) or not layer._sub_layers
    container = isinstance(layer, Sequential | LayerList)
    if single or not (outermost or container):
        yield layer
    if not isinstance(layer, Stacked):
        for child in layer.children():
            yield from layers_with_rows(child, outermost=False)


def trial_run(net, layers, note, inputs) -> None:
    """Run `net` once for evaluation; `note(layer, inputs, outputs)` sees each of `layers`."""
    modes = [(layer, layer.training) for layer in net.sublayers(include_self=True)]
    handles = [layer.register_forward_post_hook(note) for layer in dict.fromkeys(layers)]
    net.eval()
    try:
        with Recording(False):
            net(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for layer, mode in modes:
            layer.training = mode


# ---- inputs ----------------------------------------------------------------------------------


def sample_inputs(input_size, dtypes) -> list[Tensor]:
    """A tensor for each shape that `input_size` names."""
    if input_size is None:
        raise value_error(
            "summary was given neither input_size nor input",
            hint="summary(net, (1, 3, 32, 32)), or input=a_tensor",
        )
    sizes = [input_size] if is_shape(input_size) else list(input_size)
    dtypes = dtypes if isinstance(dtypes, list | tuple) else [dtypes] * len(sizes)
    if len(dtypes) != len(sizes):
        raise ValueError(f"{len(dtypes)} dtypes for {len(sizes)} inputs")
    return [sample(dims(s), dtype or "float32") for s, dtype in zip(sizes, dtypes, strict=True)]


def sample(shape, dtype) -> Tensor:
    """Something any layer can take: halves for floats, zeros for whole numbers."""
    return creation.full(shape, 0.5).astype(dtype)


def is_shape(size) -> bool:
    """Is it one shape rather than a list of shapes?"""
    if is_dim(size) or hasattr(size, "shape"):
        return True
    return all(is_dim(d) or not (isinstance(d, list | tuple) or hasattr(d, "shape")) for d in size)


def is_dim(size) -> bool:
    return size is None or isinstance(size, Integral)


def dims(size) -> list[int]:
    """A shape (a number, a tuple, anything that has one) with 1 for the batch if it is open."""
    size = getattr(size, "shape", size)
    size = [size] if is_dim(size) else list(size)
    sizes = [1 if d in (None, -1) else d for d in size]
    if sum(d in (None, -1) for d in size) > 1 or not all(is_dim(d) and d > 0 for d in sizes):
        raise value_error(f"input_size {size}", "positive whole numbers, at most one None or -1")
    return sizes


# ---- observations ----------------------------------------------------------------------------


def shapes(x):
    """The shape of a tensor, or a list of those of nested ones; [] for anything else."""
    if isinstance(x, Tensor):
        return list(x.shape)
    if isinstance(x, dict):
        x = list(x.values())
    return [shapes(v) for v in x] if isinstance(x, list | tuple) else []


def size_of(x) -> int:
    """The bytes of a tensor, or of nested ones together."""
    return sum(t.spec.nbytes for t in flatten(x)[0] if isinstance(t, Tensor))


def count(parameters) -> int:
    return sum(p.size for p in parameters)


def trainable(parameters) -> list:
    return [p for p in parameters if p.trainable]


# ---- the table -------------------------------------------------------------------------------

HEAD = ("Layer (type)", "Input Shape", "Output Shape", "Param #")
WIDTHS = (15, 20, 20, 15)
"""The least widths of the columns."""


def report(net, rows: list[LayerRow], input_bytes: int) -> str:
    """The table and the totals below it."""
    columns = zip(HEAD, *(row.cells() for row in rows), strict=True)
    widths = [max(least, *map(len, cells)) for least, cells in zip(WIDTHS, columns, strict=True)]
    width = sum(widths) + 5
    every, thin, thick = net.parameters(), "-" * width, "=" * width
    passing = 2 * sum(row.output_bytes for row in rows)  # there and back
    held = sum(map(size_of, every))
    megabytes = (
        f"{what} (MB): {size / MEGABYTE:.2f}"
        for what, size in (
            ("Input size", input_bytes),
            ("Forward/backward pass size", passing),
            ("Params size", held),
            ("Estimated Total Size", input_bytes + passing + held),
        )
    )
    total, learned = count(every), count(trainable(every))
    counts = (
        f"Total params: {total:,}",
        f"Trainable params: {learned:,}",
        f"Non-trainable params: {total - learned:,}",
    )
    table = (line(row.cells(), widths) for row in rows)
    parts = (
        thin, line(HEAD, widths), thick, *table, thick, *counts, thin, *megabytes, thin, ""
    )  # fmt: skip
    return "\n".join(parts)


def line(cells, widths, between: str = " ") -> str:
    """Cells in the middle of their columns."""
    return between.join(f"{cell:^{width}}" for cell, width in zip(cells, widths, strict=True))
