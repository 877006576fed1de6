"""`create_predictor`: a model with memory for its inputs and outputs, which handles fill and read.

A run is one call of the compiled C function on that memory. `share_external_data` puts the caller's
array in its place, so that nothing is copied.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np

from ..core.prelude import Tensor as EagerTensor
from ..core.prelude import not_supported, type_error, value_error, wrap
from ..engine.core.dim import at
from ..engine.core.dtype import resolve
from .buckets import bucket_for, fill
from .config import Config
from .model import MemoryBinding, Model, Unbound

BINDINGS = 16
"""The shapes for which a predictor keeps memory."""


class DataType(enum.Enum):
    """The dtype of a handle."""

    FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT8, UINT8, BOOL, BFLOAT16 = (
        "float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool", "bfloat16",
    )  # fmt: skip


class PlaceType(enum.Enum):
    """A kind of device."""

    UNK, CPU, GPU, XPU, CUSTOM = -1, 0, 1, 2, 4


class Tensor:
    """The handle of an input or an output."""

    def __init__(self, predictor: Predictor, name: str, k: int, is_input: bool):
        self.predictor, self.is_input = predictor, is_input
        self._name, self.k = name, k
        model = predictor.model
        self.spec = (model.inputs if is_input else model.outputs)[name]
        self.array: np.ndarray | None = None
        self.external: np.ndarray | None = None  # memory of the caller's

    def name(self) -> str:
        """The name of the input or output."""
        return self._name

    def shape(self) -> list[int]:
        """The shape: of the array if there is one, otherwise as the model says, -1 for sizes that
        vary.
        """
        array = self.value()
        if array is not None:
            return list(array.shape)
        return [n if isinstance(n, int) else -1 for n in self.spec.shape]

    def type(self) -> DataType:
        """The dtype."""
        return DataType(self.spec.dtype.name)

    def reshape(self, shape: Sequence[int] | int) -> None:
        """Make room for an input of this shape; another shape loses the contents."""
        self.require_input("reshape")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if self.array is None or self.array.shape != shape or self.external is not None:
            self.put(np.zeros(shape, self.spec.dtype))

    def copy_from_cpu(self, data) -> None:
        """Copy an array or a list of numbers into an input, which takes its shape."""
        self.require_input("copy_from_cpu")
        data = (
            np.asarray(data) if isinstance(data, np.ndarray | np.generic) else self.as_array(data)
        )
        self.require_dtype(data)
        if self.external is None and self.array is not None and self.array.shape == data.shape:
            self.array[...] = data
        else:
            self.put(data.copy())

    def share_external_data(self, data) -> None:
        """Let the run read (or write) the memory of this array or tensor, without a copy.

        Raises ValueError if it is not C-contiguous, or has another dtype. The array must not be
        resized while it is shared; what is written into it later is what later runs read.
        """
        array = data.numpy() if isinstance(data, EagerTensor) else data
        if not isinstance(array, np.ndarray):
            raise type_error(f"share_external_data of {data!r:.60}", expected="a Tensor, an array")
        self.require_dtype(array)
        if not (array.flags.c_contiguous and array.flags.aligned):
            raise value_error(
                f"share_external_data of an array with the strides {array.strides}",
                expected="C-contiguous memory",
                hint="numpy.ascontiguousarray(array), or copy_from_cpu",
            )
        if self.is_input:
            self.put(array)
        self.external, self.predictor.bound = array, None

    def copy_to_cpu(self) -> np.ndarray:
        """A copy of the array."""
        array = self.value()
        if array is None:
            raise value_error(f"{self._name} has no value yet", hint="call predictor.run() first")
        return array.copy()

    def lod(self) -> list:
        """Levels of detail: none."""
        return []

    def set_lod(self, lod) -> None:
        """Refused, except for no levels."""
        if lod:
            raise not_supported("set_lod", hint="pad the sequences, and give their lengths")

    # ---- inside ------------------------------------------------------------------------------

    def value(self) -> np.ndarray | None:
        return self.array if self.is_input else self.predictor.output(self.k)

    def put(self, array) -> None:
        """Give an input another array; the next run finds memory for its shape."""
        self.array, self.external, self.predictor.bound = array, None, None

    def as_array(self, data) -> np.ndarray:
        array = np.asarray(data)
        return array.astype(self.spec.dtype) if array.dtype.kind in "bif" else array

    def require_input(self, what: str) -> None:
        if not self.is_input:
            raise value_error(f"{what} of the output {self._name}", expected="an input")

    def require_dtype(self, array) -> None:
        if array.dtype != self.spec.dtype:
            raise value_error(
                f"{self._name} was given {array.dtype}",
                expected=f"{self.spec.dtype}",
                hint=f"array.astype('{self.spec.dtype}')",
            )


class Predictor:
    """Runs a model; one thread at a time may use it, `clone()` gives another thread its own."""

    def __init__(self, config: Config, model: Model | None = None):
        self.config = Config(config)
        self.model = model or Model(
            config.prefix(), backend=config.backend(), strategy=config._strategy,
            threads=config.cpu_math_library_num_threads(), place=config.place(),
            report=config._debug,
        )  # fmt: skip
        if config._buckets and self.model.batch is None:
            raise value_error(
                f"buckets for {config.prefix()}, whose rows may depend on each other",
                expected="a model that treats each row of a batch alone",
                hint="save it in eval() mode, with None in front of each input and output",
            )
        inputs, outputs = self.model.inputs, self.model.outputs
        self.inputs = {n: Tensor(self, n, k, True) for k, n in enumerate(inputs)}
        self.outputs = {n: Tensor(self, n, k, False) for k, n in enumerate(outputs)}
        self.bindings: dict[tuple, MemoryBinding | Unbound] = {}
        self.bound: MemoryBinding | Unbound | None = None
        self.last: MemoryBinding | Unbound | None = None  # the one that ran, of `rows` rows
        self.rows: int | None = None

    def get_input_names(self) -> list[str]:
        """The names of the inputs, in the order of `run`."""
        return [*self.inputs]

    def get_output_names(self) -> list[str]:
        """The names of the outputs."""
        return [*self.outputs]

    def get_input_handle(self, name: str) -> Tensor:
        """The handle of an input."""
        return find_handle(self.inputs, name, "input")

    def get_output_handle(self, name: str) -> Tensor:
        """The handle of an output."""
        return find_handle(self.outputs, name, "output")

    def run(self, inputs: Sequence[EagerTensor] | None = None) -> list[EagerTensor] | None:
        """Compute the outputs from the input handles; or, for a list of tensors, return a
        list of new tensors. The first run of a shape compiles.
        """
        if inputs is not None:
            return self.run_on(inputs)
        bound = self.bound or self.bind()
        bound.run()
        self.last = bound
        return None

    def run_on(self, inputs: Sequence[EagerTensor]) -> list[EagerTensor]:
        specs = self.model.inputs
        if len(inputs) != len(specs):
            raise value_error(f"{len(inputs)} tensors", expected=f"{len(specs)}: {[*specs]}")
        arrays = [x.array if isinstance(x, EagerTensor) else np.asarray(x) for x in inputs]
        for handle, array in zip(self.inputs.values(), arrays, strict=True):
            handle.require_dtype(array)
        if self.model.place.kind != "cpu":
            arrays = [x.numpy() for x in inputs]
        bound, rows = self.binding_for([a.shape for a in arrays])
        if rows is None:
            return [wrap(a) for a in bound.call(arrays)]
        padded = [np.zeros_like(array) for array in bound.inputs]
        for memory, array in zip(padded, arrays, strict=True):
            fill(memory, [array])
        return [wrap(a[:rows].copy()) for a in bound.call(padded)]

    def clone(self, stream=None) -> Predictor:
        """Another predictor of the same model, for another thread: it shares the weights and what
        was compiled.
        """
        if stream is not None:
            raise not_supported("Predictor.clone with a stream", hint="clone()")
        return Predictor(self.config, self.model)

    def try_shrink_memory(self) -> int:
        """Free the memory of all shapes; returns its bytes. Inputs keep their values."""
        freed = sum(bound.nbytes for bound in self.bindings.values())
        for handle in self.inputs.values():
            if handle.array is not None and handle.external is None:
                handle.array = handle.array.copy()
        self.bindings, self.bound, self.last = {}, None, None
        return freed

    def clear_intermediate_tensor(self) -> None:
        """Free the memory of values between inputs and outputs."""
        self.try_shrink_memory()

    def register_input_hook(self, hook) -> None:
        """Refused: compiled programs have no operators that could call it."""
        raise not_supported("register_input_hook", hint="jit.load, and paddle.viz")

    def register_output_hook(self, hook) -> None:
        """Refused: compiled programs have no operators that could call it."""
        raise not_supported("register_output_hook", hint="jit.load, and paddle.viz")

    # ---- inside ------------------------------------------------------------------------------

    def bind(self) -> MemoryBinding | Unbound:
        """Put the inputs into the memory for their shapes."""
        missing = [name for name, handle in self.inputs.items() if handle.array is None]
        if missing:
            raise value_error(
                f"the inputs {missing} have no value",
                hint="get_input_handle(name).copy_from_cpu(array)",
            )
        handles = [*self.inputs.values()]
        bound, self.rows = self.binding_for([handle.array.shape for handle in handles])
        for k, handle in enumerate(handles):
            if handle.external is not None and self.rows is None:
                bound.share_input(k, handle.external)
                continue
            if bound.inputs[k] is not bound.own[k]:
                bound.share_input(k, bound.own[k])
            memory = bound.own[k] if self.rows is None else bound.own[k][: self.rows]
            if memory is not handle.array:
                memory[...] = handle.array
            if handle.external is None:
                handle.array = memory
        self.share_outputs(bound)
        padded = self.rows is not None and any(h.external is not None for h in handles)
        self.bound = None if padded else bound  # shared memory is copied at each run
        return bound

    def binding_for(self, shapes: list[tuple]) -> tuple[MemoryBinding | Unbound, int | None]:
        """Memory for inputs of these shapes; and the number of rows, if it has more of them."""
        rows, model = None, self.model
        if self.config._buckets:
            model.check(shapes)
            rows = shapes[0][0]
            room = bucket_for(rows, self.config._buckets)
            shapes = [(room, *shape[1:]) for shape in shapes]
            rows = None if rows == room else rows
        key = tuple(shapes)
        binding = self.bindings.pop(key, None)
        if binding is None:
            if len(self.bindings) == BINDINGS:
                del self.bindings[next(iter(self.bindings))]
            binding = model.binding(shapes)
        self.bindings[key] = binding  # the last one was used last
        return binding, rows

    def share_outputs(self, bound: MemoryBinding | Unbound) -> None:
        """Let the run write where the callers want it."""
        if all(handle.external is None for handle in self.outputs.values()):
            bound.share_outputs({})
            return
        sizes = self.model.check([handle.array.shape for handle in self.inputs.values()])
        for name, handle in self.outputs.items():
            if handle.external is not None:
                shape = tuple(at(n, sizes) for n in handle.spec.shape)
                if self.rows is not None or handle.external.shape != shape:
                    raise value_error(
                        f"{name} is shared with memory of the shape {[*handle.external.shape]}",
                        expected=f"{[*shape]}"
                        if self.rows is None
                        else "a batch that is no padded one",
                    )
        shared = {h.k: h.external for h in self.outputs.values() if h.external is not None}
        bound.share_outputs(shared)

    def output(self, k: int) -> np.ndarray | None:
        if self.last is None:
            return None
        array = self.last.outputs[k]
        return array if self.rows is None else array[: self.rows]


def find_handle(handles: dict, name: str, what: str) -> Tensor:
    if name not in handles:
        raise value_error(f"there is no {what} {name!r}", expected=f"one of {[*handles]}")
    return handles[name]


class PredictorPool:
    """A predictor and clones of it, one for each thread.

    >>> import os, tempfile
    >>> prefix = os.path.join(tempfile.mkdtemp(), "double")
    >>> x = paddle.static.InputSpec([2], "float32", "x")
    >>> paddle.jit.save(lambda x: x * 2, prefix, input_spec=[x])
    >>> pool = paddle.inference.PredictorPool(paddle.inference.Config(prefix), 2)
    >>> pool.retrieve(1).run([paddle.ones([2])])[0].tolist()
    [2.0, 2.0]
    """

    def __init__(self, config: Config, size: int):
        if size < 1:
            raise value_error(f"a pool of {size} predictors", expected="at least 1")
        first = create_predictor(config)
        self.predictors = [first, *(first.clone() for _ in range(size - 1))]

    def retrieve(self, k: int) -> Predictor:
        """Predictor number k."""
        if not 0 <= k < len(self.predictors):
            raise value_error(f"predictor {k}", expected=f"0 to {len(self.predictors) - 1}")
        return self.predictors[k]


def create_predictor(config: Config) -> Predictor:
    """The predictor of a model. Raises FileNotFoundError if there is none, ValueError if its files
    are damaged.

    >>> import os, tempfile
    >>> import numpy as np
    >>> prefix = os.path.join(tempfile.mkdtemp(), "double")
    >>> x = paddle.static.InputSpec([None, 2], "float32", "x")
    >>> paddle.jit.save(lambda x: x * 2, prefix, input_spec=[x])
    >>> predictor = paddle.inference.create_predictor(paddle.inference.Config(prefix))
    >>> predictor.get_input_handle("x").copy_from_cpu(np.ones((1, 2), "float32"))
    >>> predictor.run()
    >>> predictor.get_output_handle("output_0").copy_to_cpu().tolist()
    [[2.0, 2.0]]
    """
    return Predictor(config)


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    """The bytes of a number.

    >>> paddle.inference.get_num_bytes_of_data_type(paddle.inference.DataType.FLOAT16)
    2
    """
    return resolve(dtype.value).itemsize


__all__ = [
    "DataType", "PlaceType", "Predictor", "PredictorPool", "Tensor", "create_predictor",
    "get_num_bytes_of_data_type",
]  # fmt: skip
