"""Elements in packs of 16 bytes, which a thread loads and stores at once."""

from __future__ import annotations

from contextlib import contextmanager

from ...engine.codegen.scalar import ScalarText, read
from ...engine.codegen.writer import NestWriter, for_head, in_c
from ...engine.core.polynomial import Polynomial
from ...engine.core.symbols import Composite, Loop
from ...engine.passes.nest import Nest, NestNode
from .calls import CUDA_TYPES
from .teams import index_type

MANY = 1 << 18
"""Fewest elements of a nest: with fewer, a thread for each element keeps more of the GPU busy."""

NBYTES = 16


def lanes_of(nest: Nest) -> int:
    """How many neighbours along the last loop a thread takes; 1 if it cannot take packs."""
    if nest.size < MANY:
        return 1
    last, loads = nest.loops[-1], [n for n in nest.nodes() if n.kind == "load"]
    stored = [(at, r.dtype) for r, n, at in nest.outputs if not nest.once_a_row(n, at)]
    used = [(n.index, n.dtype) for n in loads] + stored
    sizes = [dtype.itemsize for index, dtype in used if last in index.loops]
    lanes = NBYTES // max(sizes, default=NBYTES)
    if lanes == 1 or last.extent % lanes or any(jumps(index, last) for index, _ in used):
        return 1
    return lanes if all(begins_pack(at, last, lanes) for at, _ in stored) else 1


def jumps(index: Polynomial, last: Loop) -> bool:
    """Whether an index goes on otherwise than to the next element along the last loop."""
    composite = any(type(a) is Composite and last in a.loops for a in index.atoms)
    return composite or index.terms.get((last,), 0) > 1


def begins_pack(index: Polynomial, last: Loop, lanes: int) -> bool:
    """Whether an index goes through neighbours, and begins at whole packs."""
    rest = [c for monomial, c in index.terms.items() if monomial != (last,)]
    return index.terms.get((last,)) == 1 and all(c % lanes == 0 for c in rest)


class PackWriter(NestWriter):
    """The writer of a nest whose threads take packs of neighbours along the last loop."""

    def __init__(self, w: NestWriter, lanes: int):
        super().__init__(w.nest, w.names, w.outs)
        self.taken |= w.taken
        self.lanes, self.packs, self.results = lanes, {}, {}
        self.first, self.part = self.fresh("first"), self.fresh("part")

    def load(self, node: NestNode, memo) -> ScalarText:
        pack = self.packs.get((node.of, node.index))
        if pack is None or node.guard:
            return super().load(node, memo)
        return read(f"{pack}.of[{self.part}]", node.dtype)

    def stores(self, outputs, memo) -> list[tuple]:
        targets = zip(outputs, super().stores(outputs, memo), strict=True)
        return [(self.results.get(o, to), *more) for (o, *_), (to, *more) in targets]

    @contextmanager
    def pack(self, nodes, outputs):
        """Within it, the statements are for one element of pack number `first` of the last loop;
        they need these nodes, and store these outputs.
        """
        T, last, lanes = index_type(self.nest), self.nest.loops[-1], self.lanes
        begin = f"const {T} {last.name} = {self.first} * {lanes}"
        self.put(f"{begin};")
        loads = {(n.of, n.index): n for n in nodes if n.kind == "load" and not n.guard}
        for key, node in loads.items():
            if begins_pack(node.index, last, lanes):
                kind, self.packs[key] = self.kind(node.dtype), self.fresh("given")
                place = f"*(const {kind} *)({self.names[node.of]} + {in_c(node.index)})"
                self.put(f"const {kind} {self.packs[key]} = {place};")
        stores = []
        for out, record, _, at in outputs:
            kind, pack = self.kind(record.dtype), self.fresh("result")
            self.put(f"{kind} {pack};")
            self.results[out] = f"{pack}.of[{self.part}]"
            stores.append(f"*({kind} *)({out} + {in_c(at)}) = {pack};")
        self.put("#pragma unroll")
        with self.block(for_head(self.part, 0, lanes, 1, "int")):
            self.put(f"{begin} + {self.part};")
            yield
        self.put(*stores)
        self.packs, self.results = {}, {}

    def kind(self, dtype) -> str:
        return f"Pack<{CUDA_TYPES[dtype]},{self.lanes}>"
