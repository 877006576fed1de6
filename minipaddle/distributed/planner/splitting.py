"""The cuts of a model: its repeated blocks, and its weights by columns and rows."""

from contextlib import contextmanager
from typing import NamedTuple

from ...core.prelude import Record, current, slot, transpose, value_error
from ...engine.ir.program import Program
from ...engine.ops import marks
from ...engine.ops.linalg import matmul, matrix_transpose
from ...engine.sharding.placements import REPLICATE, ProcessMesh, Shard
from ...nn.layer.layers import Layer
from ...ops.affine import affine, linear
from ...ops.labels import embedding


class LayerBlocks(NamedTuple):
    """The layers of a model that repeat: `count` children of `holder`, among them `first`."""

    holder: Layer
    first: Layer
    count: int

    def holds(self, scope) -> bool:
        """Whether the layer being called is the block, or in it."""
        while scope is not None:
            parent, layer, _ = scope
            if layer is self.first:
                return True
            scope = parent
        return False

    @contextmanager
    def alone(self):
        """In the block of code reduce the model to one of them."""
        before = dict(self.holder._sub_layers)
        try:
            for name in [*before][1:]:
                del self.holder._sub_layers[name]
            yield
        finally:
            self.holder._sub_layers.update(before)


def blocks_of(model: Layer) -> LayerBlocks:
    """The children of one layer that are alike, and have most parameters together. ValueError if
    no layer has such.

    >>> from minipaddle.distributed.planner.splitting import blocks_of
    >>> blocks_of(paddle.text.GPT(5, 8, layers=3, heads=2, context=4)).count
    3
    """
    candidates = []
    for holder in model.sublayers(include_self=True):
        children = [*holder.children()]
        shapes = [[(n, tuple(p.spec.shape)) for n, p in c.named_parameters()] for c in children]
        alike = len({*map(type, children)}) == 1 and shapes.count(shapes[0]) == len(shapes)
        if alike and shapes[0] and len(children) > 1:
            size = sum(p.spec.size for c in children for p in c.parameters())
            candidates.append((size, LayerBlocks(holder, children[0], len(children))))
    if not candidates:
        raise value_error(
            f"no blocks in {type(model).__name__}",
            expected="layers that are alike in one list, of which stages are made",
            hint="self.blocks = nn.LayerList([Block(…) for _ in range(n)])",
        )
    return max(candidates, key=lambda pair: pair[0])[1]


def weight_of(x: Record, states: dict) -> tuple[Record, bool] | None:
    """(the state, whether it is transposed) of an operand that is a weight."""
    turned = False
    while x.op in (transpose, matrix_transpose):
        x, turned = x.inputs[0], not turned
    return (x, turned) if x in states else None


@slot("planner.columns_and_rows")
def columns_and_rows(program: Program) -> dict[int, Shard]:
    """The placements of a step's weights along tensor parallel: {id of parameter: shard}.

    Products with weights alternate: one is sharded by columns, and the next, which reads its
    result, by rows: its partial sums are added. A bias is sharded like the columns that it is added
    to, a table of embeddings by rows.
    Source: Shoeybi et al., "Megatron-LM", 2019.
    """
    states = {s.record: getattr(s.storage, "tensor", None) for s in program.states}
    depth: dict[Record, int] = {}
    shards: dict[int, Shard] = {}
    for record in program.records:
        deep = max((depth.get(x, 0) for x in record.inputs), default=0)
        if record.op is embedding and record.inputs[0] in program.inputs:
            shards.setdefault(id(states.get(record.inputs[1])), Shard(0))
        weight = weight_of(record.inputs[1], states) if record.op in PRODUCTS else None
        if weight is not None and weight_of(record.inputs[0], states) is None:
            deep, (state, turned) = deep + 1, weight
            columns = deep % 2
            turned ^= bool(record.attrs.get("transpose"))
            shards.setdefault(id(states[state]), Shard(1 if columns != turned else 0))
            if columns and len(record.inputs) > 2:
                shards.setdefault(id(states.get(record.inputs[2])), Shard(0))
        depth[record] = deep
    return shards


PRODUCTS = (affine, linear, matmul)


@contextmanager
def sequence_parallel(blocks: LayerBlocks, placements: dict[int, Shard], mesh: ProcessMesh):
    """In the block of code shard values along the sequence between the parts of a block that tensor
    parallel shards: hooks move them. Source: Korthikanti et al., "Reducing Activation
    Recomputation in Large Transformer Models", 2022.
    """

    def reshard(x, placement):
        return marks.reshard(x, mesh=mesh, placements=(placement,)) if x.spec.ndim > 2 else x

    def make_move(placement):
        """A move outside of the block's scope: the next block continues with the shards."""

        def move(x):
            scope = current.top.scope
            current.top.scope = scope and scope[0]
            try:  # the factor keeps the block's gradient apart from what was known whole before
                return reshard(x * 1.0, placement)
            finally:
                current.top.scope = scope

        return move

    begin, end, biases = make_move(Shard(1)), make_move(REPLICATE), {}
    hooks = [
        blocks.first.register_forward_pre_hook(lambda _, xs: (begin(xs[0]), *xs[1:])),
        blocks.first.register_forward_post_hook(lambda _, xs, y: end(y)),
    ]
    for layer in blocks.first.sublayers():
        placement = placements.get(id(getattr(layer, "weight", None)))
        if placement == Shard(1):
            hooks.append(
                layer.register_forward_pre_hook(lambda _, xs: (reshard(xs[0], REPLICATE), *xs[1:]))
            )
        elif placement == Shard(0):
            bias = biases[layer] = layer._parameters.pop("bias", None)
            layer.bias = None  # a bias is added to the shards

            def add_bias(_, xs, y, bias=bias):
                y = reshard(y, Shard(1))
                return y if bias is None else y + bias

            hooks.append(layer.register_forward_post_hook(add_bias))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for layer, bias in biases.items():
            layer.bias = bias
