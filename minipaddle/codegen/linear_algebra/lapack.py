"""Linear algebra in C: functions of LAPACK, called by pointers into the OpenBLAS of NumPy.

The calls are those of NumPy, so results are NumPy's to the last bit, and what LAPACK reports as a
failure (a singular matrix) is left to the host, which raises NumPy's error. So are all matrices if
NumPy has no OpenBLAS of its own.
"""

from __future__ import annotations

import ctypes
import re
from math import prod

from ...engine.codegen.kernel import C_TYPES, Kernel, emits, read_template, results
from ...engine.codegen.scalar import CannotWrite, wide
from ...engine.core import dtype as dt
from ...engine.core.spec import broadcast_shapes
from ...ops.matrix_functions import PADE
from ..c_text import Workspace
from ..indices.indexing import element
from ..products.blas import lapack_pointer, library_function
from ..rows.axis_lines import fill_kernel
from ..rows.collapsed_loops import digits
from ..target import fill, insert

MATRICES = read_template("matrices.c", __file__)


CALL = re.compile(r"CALL (\w+)\(")


def room_for(name: str, *arguments) -> int:
    """The elements of workspace that a function of LAPACK asks for, as NumPy asks it. Of its
    arguments, without `info`, ... is the workspace, and None another array.
    """
    address = library_function(f"scipy_d{name}_64_")
    if address is None:
        return 1
    answer, other = ctypes.c_double(), ctypes.create_string_buffer(64)
    pointers: list = []
    for x in (*arguments, 0):
        number = ctypes.byref(ctypes.c_int64(x)) if type(x) is int else other
        pointer = ctypes.byref(answer) if x is ... else number
        pointers.append(x.encode() if type(x) is str else pointer)
    ctypes.CFUNCTYPE(None)(address)(*pointers)
    return int(answer.value)


GIVE_UP = "{ bad_index++; return; }"
"""The statement that leaves a record to the host."""


def emit_batch(
    record, name: str, text: str, dtype, reals=(), wholes=(), double=False, **words
) -> Kernel:
    """A kernel for a stack of matrices. In its template `CALL f(…)` calls a function of LAPACK in
    double, which sets `info`; 0 is success. `reals` and `wholes` are pairs (name, size) of
    arrays in the workspace.
    """
    if dtype not in dt.FLOATS:
        raise CannotWrite(f"{record.op.name} of {dtype}")
    if not any(spec.size for spec in results(record)):
        return fill_kernel(record, name, "", dtype)
    called, room = dict.fromkeys(CALL.findall(text)), Workspace()
    double = double or bool(called) or wide(dtype) == dt.float64.numpy  # as in NumPy
    real = "double" if double else "float"
    head = [f"{real} *const {a} = {room.array(real, n)};\n" for a, n in reals]
    for a, n in wholes:
        head.append(f"int64_t *const {a} = (int64_t *){room.array('double', n)};\n")
    if called:
        missing = " || ".join(f"!lapack_d{f}" for f in called)
        head.append(f"int64_t info = 0;\nif ({missing}) {GIVE_UP}\n")
    text = CALL.sub(r"lapack_d\1(", text).replace("GIVE_UP", GIVE_UP)
    E, suffix = C_TYPES[dtype], "" if double else "f"
    types = {"BYCOLUMNS": f"columns_{E}", "BYROWS": f"rows_{E}", "T": real}
    types |= {f: f"{c}{suffix}" for f, c in (("LOG", "log"), ("EXP", "exp"), ("ABS", "fabs"))}
    if dtype not in dt.HALVES:
        types["LOAD"] = f"({real})"
    helpers = [lapack_pointer(f"d{f}") for f in called]
    helpers += [fill(MATRICES, C_TYPES, dtype, types)] if called else []
    text, words = "".join([*head, text]), types | words
    return fill_kernel(record, name, text, dtype, work=room.size, helpers=helpers, **words)


def sizes(spec) -> dict:
    """The words of a template for a stack of matrices."""
    *lead, rows, columns = spec.shape
    return {"COUNT": prod(lead), "M": rows, "N": columns, "K": min(rows, columns)}


def square(x, *names: str) -> tuple:
    """Square matrices in the workspace by these names, and as many pivots as rows."""
    n = x.shape[-1]
    return [(name, n * n) for name in names], [("pivots", n)]


INVERSE = read_template("inverse.c", __file__)


@emits("inverse")
def emit_inverse(record, name: str) -> Kernel:
    x = record.inputs[0].spec
    return emit_batch(record, name, INVERSE, x.dtype, *square(x, "a", "y"), **sizes(x))


DETERMINANT = read_template("determinant.c", __file__)
"""Of a matrix that is exactly singular LAPACK tells, and its determinant is 0."""


RESULTS = {
    "det": "out0[b] = STORE(sign * EXP(size));",
    "slogdet": "out0[b] = STORE(sign);\nout1[b] = STORE(size);",
}
"""The parts of a determinant's sign and logarithm that are stored, by operator."""


@emits(*RESULTS)
def emit_determinant(record, name: str) -> Kernel:
    x = record.inputs[0].spec
    text = insert(DETERMINANT, RESULT=RESULTS[record.op.name])
    return emit_batch(record, name, text, x.dtype, *square(x, "a"), **sizes(x))


SOLVE = read_template("solve.c", __file__)


def operands(record) -> dict:
    """The words of a template for two stacks of matrices, which broadcast."""
    x, y = (edge.spec for edge in record.inputs)
    if x.dtype != y.dtype:
        raise CannotWrite("matrices of two dtypes")
    lead, words = broadcast_shapes(x.shape[:-2], y.shape[:-2]), sizes(record.spec)
    for word, spec in (("LEFT", x), ("RIGHT", y)):
        matrix = element(spec.shape[:-2], digits("b", lead))
        words[word] = f"({matrix}) * {prod(spec.shape[-2:])}"
    return words


@emits("solve")
def emit_solve(record, name: str) -> Kernel:
    words, (n, columns) = operands(record), record.shape[-2:]
    reals = ("a", n * n), ("y", n * columns)
    return emit_batch(record, name, SOLVE, record.dtype, reals, [("pivots", n)], **words)


SUBSTITUTE = read_template("substitute.c", __file__)
"""Row after row, from the first or from the last; eight columns at a time."""


@emits("solve_triangular")
def emit_solve_triangular(record, name: str) -> Kernel:
    words, at, (n, columns) = operands(record), record.attrs, record.shape[-2:]
    width = -(-columns // 8) * 8
    row = "(S)" if at["lower"] != at["transpose"] else f"({n - 1} - (S))"
    words |= {
        "WIDTH": width, "FACTOR": "k * n + i" if at["transpose"] else "i * n + k",
    }  # fmt: skip
    text = SUBSTITUTE.replace("DIAGONAL", "1" if at["unit"] else "LOAD(x[i * n + i])")
    for step in "st":
        text = text.replace(f"ROW({step})", row.replace("S", step))
    return emit_batch(record, name, text, record.dtype, [("y", n * width)], double=True, **words)


CHOLESKY = read_template("cholesky.c", __file__)


@emits("cholesky")
def emit_cholesky(record, name: str) -> Kernel:
    return emit_batch(
        record, name, CHOLESKY, record.dtype, square(record, "a")[0], **sizes(record.spec)
    )


QR = read_template("qr.c", __file__)


@emits("qr")
def emit_qr(record, name: str) -> Kernel:
    x = record.inputs[0].spec
    m, n = x.shape[-2:]
    q = record.shape[0].shape[-1]
    first = room_for("geqrf", m, n, None, m, None, ..., -1)
    second = room_for("orgqr", m, q, min(m, n), None, m, None, ..., -1)
    reals = ("a", m * max(m, n)), ("r", q * n), ("scale", min(m, n)), ("own", max(first, second))
    rooms = {"FIRST": first, "SECOND": second}
    return emit_batch(record, name, QR, x.dtype, reals, **sizes(x), **rooms, Q=q)


SVD = read_template("svd.c", __file__)

STORE_SVD = """\
BYROWS(u, out0 + b * m * p, m, p);
for (int64_t i = 0; i < K; i++) out1[b * K + i] = STORE(s[i]);
BYROWS(v, out2 + b * q * n, q, n);
"""

STORE_PINV = read_template("pinv.c", __file__)


def emit_gesdd(record, name: str, x, job: str, p: int, q: int, result: str, **more) -> Kernel:
    """A kernel that begins with a singular value decomposition."""
    words, (m, n) = sizes(x), x.shape[-2:]
    low, none = min(m, n), (None,) * 2
    free = room_for("gesdd", job, m, n, None, m, *none, m, None, q, ..., -1, None)
    words |= {"P": p, "R": q, "FREE": free, "JOB": f'"{job}"'} | more
    reals = ("a", m * n), ("u", m * p), ("s", low), ("v", q * n), ("own", free)
    text = insert(SVD, RESULT=result)
    return emit_batch(record, name, text, x.dtype, reals, [("places", 8 * low)], **words)


@emits("svd")
def emit_svd(record, name: str) -> Kernel:
    x, (u, _, v) = record.inputs[0].spec, record.shape
    job = "A" if record.attrs["full_matrices"] else "S"
    return emit_gesdd(record, name, x, job, u.shape[-1], v.shape[-2], STORE_SVD)


EIGH = read_template("eigh.c", __file__)

STORE_EIGH = """\
for (int64_t i = 0; i < n; i++) out0[b * n + i] = STORE(w[i]);
BYROWS(a, out1 + b * n * n, n, n);
"""

STORE_PINV_OF_SYMMETRIC = read_template("pinv_symmetric.c", __file__)


def emit_syevd(record, name: str, half: str, result: str, **more) -> Kernel:
    """A kernel that begins with the eigenvalues of symmetric matrices."""
    x = record.inputs[0].spec
    n, text = x.shape[-1], insert(EIGH, RESULT=result)
    free = room_for("syevd", "v", half, n, None, n, None, ..., -1, None, -1)
    words = sizes(x) | {"FREE": free, "HALF": f'"{half}"'} | more
    reals = ("a", n * n), ("w", n), ("own", free)
    return emit_batch(record, name, text, x.dtype, reals, [("whole", 3 + 5 * n)], **words)


@emits("eigh")
def emit_eigh(record, name: str) -> Kernel:
    return emit_syevd(record, name, "L" if record.attrs["lower"] else "U", STORE_EIGH)


@emits("pinv")
def emit_pinv(record, name: str) -> Kernel:
    x, rcond = record.inputs[0].spec, float(record.attrs["rcond"])
    if record.attrs["hermitian"]:
        return emit_syevd(record, name, "L", STORE_PINV_OF_SYMMETRIC, RCOND=rcond)
    low = min(x.shape[-2:])
    return emit_gesdd(record, name, x, "S", low, low, STORE_PINV, RCOND=rcond)


EIG = read_template("eig.c", __file__)


@emits("eig")
def emit_eig(record, name: str) -> Kernel:
    x = record.inputs[0].spec
    n = x.shape[-1]
    none = (None,) * 2
    free = room_for("geev", "n", "v", n, None, n, *none, None, 1, None, n, ..., -1)
    reals = ("a", n * n), ("real", n), ("imaginary", n), ("v", n * n), ("own", free)
    return emit_batch(record, name, EIG, x.dtype, reals, **sizes(x), FREE=free)


LU = read_template("lu.c", __file__)


@emits("lu")
def emit_lu(record, name: str) -> Kernel:
    x = record.inputs[0].spec
    return emit_batch(record, name, LU, x.dtype, [("a", prod(x.shape[-2:]))], **sizes(x))


PERMUTATION = read_template("permutation.c", __file__)


@emits("permutation")
def emit_permutation(record, name: str) -> Kernel:
    steps = record.inputs[0].shape[-1]
    words, n = sizes(record.spec), record.shape[-1]
    order = [("order", n)]
    return emit_batch(record, name, PERMUTATION, record.dtype, (), order, **words, STEPS=steps)


EXPONENTIAL = read_template("matrix_exp.c", __file__)

MULTIPLY = read_template("multiply.c", __file__)


@emits("matrix_exp")
def emit_matrix_exp(record, name: str) -> Kernel:
    """The power of a matrix by columns is that of its transpose: squaring needs no copy."""
    x = record.inputs[0].spec
    rooms = square(x, "a", "power", "next", "even", "odd")
    types = {"MULTIPLY": "multiply_double", "EIGHT": "eight_double"}
    kernel = emit_batch(record, name, EXPONENTIAL, x.dtype, *rooms, **sizes(x), **types, PADE=PADE)
    text = fill(MULTIPLY, C_TYPES, dt.float64.numpy, types)
    return kernel._replace(helpers=(*kernel.helpers, text) if record.spec.size else ())
