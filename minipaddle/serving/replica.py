"""A model of ours as the server runs it: requests side by side in one run, rows that pad it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter

import numpy as np

from ..engine.core.dim import Dim
from ..engine.core.slots import slot
from ..inference.buckets import bucket_for, fill
from ..inference.model import MemoryBinding, Unbound

SHAPES = 16
"""How many shapes a model is compiled for while it serves, beyond those known before; any other
shape is interpreted."""
KEPT = 64
"""For how many shapes a replica keeps memory."""


class ServedModel:
    """The interface of a model to the server: specs, whether requests may share a run, replicas.

    model: `inference.Model`, or an object with its inputs, outputs, batch, check and binding
    """

    def __init__(
        self, model, *, largest: int, buckets: Sequence[int], platform: str = "minipaddle"
    ):
        self.model, self.platform = model, platform
        self.inputs, self.outputs = self.model.inputs, self.model.outputs
        self.shares = self.model.batch is not None
        self.largest = largest if self.shares else 1
        self.buckets = sorted({*buckets, self.largest}) if self.shares else []
        self.compiled: set[tuple] = set()
        self.costs: dict[int, float] = {}

    def check(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Raise ValueError unless the model takes inputs of these shapes."""
        self.model.check(shapes)

    def replica(self) -> ModelReplica:
        """A runner for one thread."""
        return ModelReplica(self)

    def warm_up(self, replica: ModelReplica) -> None:
        """Compile for all buckets, and measure them, if the rows are all that varies."""
        known = [
            [n for n in spec.shape[self.shares :] if not isinstance(n, Dim)]
            for spec in self.inputs.values()
        ]
        specs = self.inputs.values()
        if any(len(k) + self.shares < len(s.shape) for k, s in zip(known, specs, strict=True)):
            return
        for rows in self.buckets or [0]:
            bound = replica.bind([(rows,) * self.shares + tuple(k) for k in known])
            seconds = min(seconds_of(bound) for _ in range(3))
            if seconds < math.inf:
                self.costs[rows] = seconds

    def cost(self, rows: int) -> float:
        """The seconds of a run of `rows` rows, as far as they are known."""
        return min([(n, t) for n, t in self.costs.items() if n >= rows], default=(0, 0.0))[1]

    def may_compile(self, shapes: tuple) -> bool:
        """Whether a shape is compiled: a stranger must not keep the compiler busy for ever."""
        if shapes not in self.compiled and len(self.compiled) < SHAPES + len(self.buckets):
            self.compiled.add(shapes)
        return shapes in self.compiled


class ModelReplica:
    """Runs requests on memory of its own."""

    def __init__(self, served: ServedModel):
        self.served, self.bindings = served, {}

    def __call__(self, requests: list[list[np.ndarray]]) -> list[list[np.ndarray] | Exception]:
        """For each request its outputs, or its own error."""
        try:
            return self.run(requests)
        except Exception as error:
            if len(requests) == 1:
                return [error]
            return [self([request])[0] for request in requests]  # the others are not to blame

    def run(self, requests: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
        served = self.served
        if not served.shares:
            bound = self.bind([a.shape for a in requests[0]])
            for memory, array in zip(bound.inputs, requests[0], strict=True):
                memory[...] = array
            bound.run()
            return [[array.copy() for array in bound.outputs]]
        rows = [len(request[0]) for request in requests]
        bucket = choose_bucket(served.buckets, sum(rows))
        bound = self.bind([(bucket, *a.shape[1:]) for a in requests[0]])
        lay_together(bound.inputs, requests)
        bound.run()
        return cut_apart(bound.outputs, rows)

    def bind(self, shapes: list[tuple]) -> MemoryBinding | Unbound:
        """Memory for inputs of these shapes."""
        key = tuple(shapes)
        binding = self.bindings.pop(key, None)
        if binding is None:
            compiled = self.served.may_compile(key)
            binding = self.served.model.binding(shapes, compiled=compiled)
            if len(self.bindings) == KEPT:
                del self.bindings[next(iter(self.bindings))]
        self.bindings[key] = binding
        return binding


@slot("serving.choose_bucket")
def choose_bucket(buckets: Sequence[int], rows: int) -> int:
    """The rows of a run: the least bucket that holds `rows`, or `rows`."""
    return bucket_for(rows, buckets)


@slot("serving.lay_together")
def lay_together(memory: list[np.ndarray], requests: list[list[np.ndarray]]) -> None:
    """Write the rows of all requests into the memory of each input, one after the other, and the
    last row into all that are left: valid data pad a batch.
    """
    for room, arrays in zip(memory, zip(*requests), strict=True):
        fill(room, arrays)


@slot("serving.cut_apart")
def cut_apart(outputs: list[np.ndarray], rows: list[int]) -> list[list[np.ndarray]]:
    """The outputs of each request, which had `rows[k]` rows. They are copies: the next run writes
    into the same memory.
    """
    ends = np.cumsum(rows).tolist()
    pieces = [slice(a, b) for a, b in zip([0, *ends], ends)]
    return [[array[piece].copy() for array in outputs] for piece in pieces]


def seconds_of(bound: MemoryBinding | Unbound) -> float:
    """The time of a run; inf if it fails, as it may for zeros."""
    began = perf_counter()
    try:
        bound.run()
    except Exception:
        return math.inf
    return perf_counter() - began
