"""The program of one rank: each operator on local pieces, and the moves between placements.

The whole-step program (forward, backward, optimizer) is written for whole tensors. Where its inputs
and states lie is known; so is, operator by operator, where the results lie (`propagate`). This pass
replays it on local pieces: specs become local, and collectives stand where placements change. A
state ends where it began.

Source: Xu et al., "GSPMD: General and Scalable Parallelization for ML Computation Graphs", 2021.
"""

from __future__ import annotations

from ..core.dispatch import Recording
from ..core.record import Record, Spec
from ..core.slots import slot
from ..eager.device import current_place
from ..eager.tensor import wrap
from ..eager.tracer import Tracer, tracing
from ..ir.builder import Builder
from ..ir.program import ITEM, NUMBER, Program, State
from ..sharding.pieces import MeshView, Piece, apply_to_pieces
from ..sharding.placements import Placements, combine_terms, local_shape


class Partitioner(Builder):
    """Writes the program of one rank."""

    def __init__(self, program: Program, view: MeshView):
        super().__init__(program.name, place=current_place())
        self.old, self.view = program, view
        self.pieces: dict[Record, object] = {}
        self.source: Record | None = None

    def emit(self, op, inputs, attrs, scope=None, flow=0):
        before = len(self.program.records)
        y = super().emit(op, inputs, attrs, self.source and self.source.scope, flow)
        for record in self.program.records[before:]:
            record.where, record.source = self.source and self.source.where, self.source
            if record.op.effect and record.where and record.op is not self.source.op:
                record.where = *record.where[:2], call_of(self.source)
        return y

    def local_input(self, record: Record, placements: Placements) -> Record:
        """The input that stands for one of the whole program."""
        spec = record.spec
        local = Spec(
            local_shape(spec.shape, placements, self.view.shape, self.view.place), spec.dtype
        )
        new = Record(record.op, (), record.attrs, *local)
        self.pieces[record] = Piece(wrap(self.symbolic(new, self.place)), spec, placements)
        return new

    def run(self, placements: list[Placements], terms) -> tuple[Program, list[Placements]]:
        """The program, and where its results lie; `placements` are those of what it is given."""
        old = self.old
        new = [self.local_input(r, p) for r, p in zip(old.given, placements, strict=True)]
        for time, record in enumerate(old.given):
            self.pieces[record].time = time - len(old.given)
        self.program.inputs, self.program.gradient_of = new[: len(old.inputs)], old.gradient_of
        with tracing(Tracer(builder=self)), Recording(False):
            for time, record in enumerate(old.records):
                self.source = record
                self.pieces[record] = results = self.write(record)
                for piece in results if type(results) is tuple else (results,):
                    piece.time = time
            outputs = [self.output(self.pieces[r], k in terms) for k, r in enumerate(old.outputs)]
            states = zip(old.states, new[len(old.inputs) :], placements[len(old.inputs) :])
            for state, record, place in states:
                update = None
                if state.update is not None:
                    self.source = state.update
                    update = self.value(self.pieces[state.update].as_placed(place, self.view).array)
                self.program.states.append(State(state.name, record, update, state.storage))
        self.program.outputs = [self.value(x.array) for x, _ in outputs]
        return self.program, [p for _, p in outputs]

    def output(self, piece: Piece, terms: bool):
        """The local tensor of an output, and how it lies: terms are joined unless they may stay."""
        place = piece.placements if terms else combine_terms(piece.placements)
        return piece.as_placed(place, self.view), place

    def write(self, record: Record):
        """The piece, or pieces, that stand for a record."""
        if record.op is ITEM:
            return self.pieces[record.inputs[0]][record.attrs["k"]]
        inputs = [r.attrs["value"] if r.op is NUMBER else self.pieces[r] for r in record.inputs]
        results = record.shape if record.dtype is None else record.spec
        return apply_to_pieces(record.op, inputs, record.attrs, results, self.view)


def call_of(record: Record) -> str:
    """An operator with the names of what it is given, `affine(x, linear_0.w_0)`."""
    names = [r.attrs.get("name") or str(r.spec) for r in record.inputs if r.dtype is not None]
    return f"{record.op.name}({', '.join(names)})"


@slot("passes.partition")
def partition(
    program: Program, placements: list[Placements], view: MeshView, terms=()
) -> tuple[Program, list[Placements]]:
    """The program of a rank, and how its outputs lie. `placements` are those of inputs and states;
    `view` is how the rank sees the mesh; `terms` are the numbers of outputs that may stay terms,
    to which a later run adds: those of other outputs are joined.
    """
    return Partitioner(program, view).run(placements, terms)
