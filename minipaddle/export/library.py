"""A program as the text of a C library: passes, kernels and plan as for this machine, but for a
processor by its name, on one thread, and with nothing outside but memcpy.

What lies where in the arena: the pointers, states that a run updates, weights in the form that
kernels want, inputs, outputs, and at the end the values that the memory plan places.
"""

import hashlib
import re
from functools import cached_property

from ..codegen.machine import target_facts
from ..codegen.products.blas import BLAS
from ..core.display import hide_folders
from ..engine.codegen.kernel import BAD_INDEX, POINTERS, Kernel, read_template
from ..engine.codegen.step import KernelTable, StepWriter, refusal
from ..engine.codegen.translation_unit import HEADERS, with_prologue
from ..engine.core import dtype as dt
from ..engine.core.dim import Dim
from ..engine.core.errors import line_of, value_error
from ..engine.core.record import Record, Spec
from ..engine.eager.device import NUMPY
from ..engine.eager.storage import TensorStorage
from ..engine.executors.native import Executable
from ..engine.ir.program import Program, State, everywhere, open_sizes
from ..engine.passes.buffer_assignment import MemoryPlan
from ..engine.passes.lifetimes import specs_of
from ..jit.saved import Method, SavedModel, SavedState
from ..tensor.generator import GENERATOR, GeneratorStorage
from .arena import lay_out
from .header import HeaderArray, identifiers
from .mathematics import replace_libm
from .processor import LEVELS
from .weights import offsets, to_bytes

INDEX_ERRORS = 100
"""The first error code of a record whose index is out of range."""

OPENMP = re.compile(
    r"(parallel for|if \(parallel: threads > 1\)|num_threads\(threads\)|schedule\(dynamic\)) ?"
)


class LibraryStep(StepWriter):
    """The functions of a library. A record whose index is out of range ends the run with a code."""

    def __init__(self, kernels: KernelTable, plan: MemoryPlan):
        self.kernels, self.functions, self.count = kernels, [], 0
        self.function(plan, "step")

    def record(self, plan: MemoryPlan, record: Record) -> list[str]:
        kernel = self.kernels.of.get(record)
        if kernel is None or BAD_INDEX not in kernel.helpers:
            return [
                line.replace(") return 1;", ") return 1;") for line in super().record(plan, record)
            ]
        code = INDEX_ERRORS + self.kernels.hosted.index(record)
        self.kernels.of[record] = kernel._replace(helpers=())
        (call,) = super().record(plan, record)
        self.kernels.of[record] = kernel
        call = call.replace(f"{kernel.name}(", f"{kernel.name}(&bad, ", 1)
        return [f"{{ int bad = 0; {call} if (bad) return {code}; }}"]


class Library:
    """The C text of one method of a model, its weights, and the sizes that its header names."""

    def __init__(self, saved: SavedModel, method: str, processor: str):
        self.method, self.processor = method, processor
        program = bind_storage(method_named(saved, method), saved.states)
        refuse_open_sizes(program)
        refuse_half(program)
        with target_facts(LEVELS[processor].facts):
            built = Executable(program, {"tuned": False}, tuned={}, frozen=True, load=False)
        self.program, self.kernels, self.plan = built.program, built.kernels, built.plan
        refuse_host(self.kernels)
        self.place(saved.methods[method])

    def place(self, method: Method) -> None:
        """Give every value its address."""
        program, packed = self.program, self.kernels.prepacked
        used = {x for r in everywhere(program) for x in r.inputs} | {*program.outputs}
        used |= {s.update for s in program.states} | {s.record for s in program.states if s.update}
        self.weights = [k for k, s in enumerate(program.states) if s.record in used]
        self.arrays = [values_of(program.states[k]) for k in self.weights]
        self.offsets, self.file_size = offsets([a.nbytes for a in self.arrays])
        self.pointers = len(program.given) + len(program.outputs)
        records = [s.record for s in program.states]
        updated = {k: records[k].spec for k in self.weights if program.states[k].update}
        prepacked = {
            k: Spec((packed[records[k]].elements,), records[k].dtype)
            for k in self.weights
            if records[k] in packed
        }
        names = identifiers(method.inputs)
        pairs = zip(names, method.inputs, program.inputs, strict=True)
        self.inputs = [HeaderArray(name, r.spec, label=label) for name, label, r in pairs]
        names = [f"output_{k}" for k in range(len(program.outputs))]
        self.outputs = [HeaderArray(n, r.spec, label=n) for n, r in zip(names, program.outputs)]
        specs = [*updated.values(), *prepacked.values(), *(s.spec for s in self.inputs)]
        sizes = [spec.nbytes for spec in [*specs, *(s.spec for s in self.outputs)]]
        places, self.work, self.size = lay_out(self.pointers, sizes, self.plan.size)
        following = iter(places)
        self.updated = {k: next(following) for k in updated}
        self.packed = {k: next(following) for k in prepacked}
        for array in self.inputs + self.outputs:
            array.at = next(following)

    # ---- text --------------------------------------------------------------------------------

    @cached_property
    def body(self) -> str:
        """The kernels and the function `step`, with all that they call."""
        kernels = self.kernels
        step = LibraryStep(kernels, self.plan)
        helpers = [NO_BLAS if x == BLAS else x for x in kernels.helpers if x != BAD_INDEX]
        texts = [self.kernel_text(name, text) for name, text in kernels.texts.items()]
        pack = [
            re.sub(r"__attribute__.*\n", "static ", f.replace("PREFIX_", ""))
            for f in kernels.functions
        ]
        text = with_prologue([ONE_THREAD, *helpers, *texts, *step.functions, *pack])
        text = replace_libm(text.replace(HEADERS, read_template("headers.c", __file__)))
        return hide_folders(remove_threads(text))

    def kernel_text(self, name: str, text: str) -> str:
        """A kernel, which counts bad indices for its caller."""
        if BAD_INDEX not in self.kernels.needs[name]:
            return text
        text = re.sub(
            rf"^static void {name}\w*\(", r"\g<0>int *bad_index, ", text, flags=re.MULTILINE
        )
        text = re.sub(rf"(?<!static void )\b({name}\w*)\((?!int \*bad)", r"\1(bad_index, ", text)
        return text.replace("bad_index++", "++*bad_index")

    @cached_property
    def number(self) -> int:
        """A number that ties weights to this text: both are of one export."""
        specs = [str(a.dtype) + str(a.shape) for a in self.arrays]
        text = "\0".join([self.body, *specs])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

    @cached_property
    def weights_file(self) -> bytes:
        """The bytes of the weights."""
        return to_bytes(self.arrays, self.number)

    @property
    def index_errors(self) -> list[str]:
        """For each record that may meet an index out of range: its operator and the user's line."""
        lines = ((r.op.name, line_of(r.where) if r.where else "") for r in self.kernels.hosted)
        return [f"{op}: an index is out of range, at {hide_folders(x)}" for op, x in lines]


ONE_THREAD = "enum { threads = 1 };\n"
NO_BLAS = "#define blas_sgemm ((void (*)())0)\n"


def method_named(saved: SavedModel, name: str) -> Method:
    """A method of a model."""
    if name not in saved.methods:
        raise value_error(
            f"the model has no {name!r}", expected=f"one of {', '.join(saved.methods)}"
        )
    return saved.methods[name]


def bind_storage(method: Method, states: dict[str, SavedState]) -> Program:
    """The program, which knows the values of its states."""
    program = Program(**vars(method.program))
    program.states = [
        State(s.name, s.record, s.update, storage_of(states[s.name])) for s in program.states
    ]
    return program


def storage_of(kept: SavedState):
    return GeneratorStorage(GENERATOR) if kept.tensor is None else TensorStorage(kept.tensor)


def values_of(state: State):
    """The values of a state, for the file of weights."""
    return NUMPY.ascontiguousarray(state.storage.read(), dtype=state.record.dtype)


def remove_threads(text: str) -> str:
    """A text whose loops one thread runs."""
    lines = []
    for line in text.split("\n"):
        if "#pragma omp parallel" in line:
            line = OPENMP.sub("", line).rstrip()
            if "simd" not in line:
                continue
        lines.append(line)
    return "\n".join(lines)


# ---- what cannot be exported -------------------------------------------------------------------


def refuse_open_sizes(program: Program) -> None:
    """Raise ValueError if the program is for inputs of several shapes."""
    if not (unknown := sorted(open_sizes(program))):
        return
    named = [(r.attrs["name"], r.spec) for r in program.inputs]
    inputs = ", ".join(f"{name}: {spec}" for name, spec in named)
    shapes = (",".join("1" if type(n) is Dim else str(n) for n in s.shape) for _, s in named)
    raise value_error(
        f"sizes are open: {', '.join(unknown)}, in {inputs}",
        expected="numbers: memory is planned when the library is written",
        hint=" ".join(f"--input {shape}" for shape in shapes) + ", or sizes in input_spec",
    )


def refuse_half(program: Program) -> None:
    """Raise ValueError if the program has values of float16."""
    for record in (*program.given, *everywhere(program)):
        if dt.float16.numpy in (spec.dtype for spec in specs_of(record)):
            name = record.attrs.get("name") or record.op.name
            raise value_error(
                f"{name} of float16: C has no such type on every processor",
                expected="float32 or bfloat16",
                hint="x.astype('float32'), or layer.to(dtype='float32'), before it is saved",
                where=record.where,
            )


def refuse_host(kernels: KernelTable) -> None:
    """Raise ValueError if Python or a library of NumPy's computes one of the records."""
    for record, kernel in kernels.of.items():
        why = refusal(record) if kernel is None else find_lapack(kernel)
        if why:
            raise value_error(
                f"{record.op.name} has no C of its own: {why}",
                expected="operators that C computes",
                hint="compute it before or after the exported part",
                where=record.where,
            )


def find_lapack(kernel: Kernel) -> str:
    """The function of LAPACK that a kernel needs; "" if it needs none."""
    names = [re.search(r"\(\*(\w+)\)", x)[1] for x in kernel.helpers if x in POINTERS and x != BLAS]
    return f"NumPy's {names[0]} computes it" if names else ""
