"""MiniPaddle's names and signatures against Paddle's, from tests/data/paddle_signatures.json.

What Paddle's users write must run: the same names, the same parameters in the same order with the
same defaults. Every public name of Paddle exists or is left out for a reason; where a signature
means to differ, one table says so and why.
"""

import ast
import inspect
import json
import re
from fnmatch import filter as filter_names
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.core.elsewhere import StandIn
from minipaddle.core.left_out import LEFT_OUT, heads_of, reason

DATA = Path(__file__).parents[1] / "data"
RECORD = json.loads((DATA / "paddle_signatures.json").read_text())
PADDLE = RECORD["signatures"]


def listed(name: str) -> list[str]:
    return (DATA / name).read_text().split()


CORE, NEXT = listed("api_core.txt"), listed("api_next.txt")


def find(name: str):
    """What `name` stands for in MiniPaddle; AttributeError if nothing."""
    found = paddle
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def exists(name: str) -> bool:
    """Whether there is more of it than a class that says why it is left out."""
    try:
        return type(find(name)) is not StandIn
    except AttributeError:
        return False


# ---- names -----------------------------------------------------------------------------------

COMMANDS = {"paddle.distributed.launch"}
"""Modules that are run by `python -m`: attributes only once somebody has imported them."""
EVERY = sorted({*PADDLE, *RECORD["attributes"], *RECORD["unreadable"]} - COMMANDS)
"""Every public name of Paddle."""


def test_names_that_users_write_exist():
    assert not [name for name in CORE + NEXT if not exists(name) and reason(name) is None]


def test_every_public_name_exists_or_is_left_out_for_a_reason():
    assert not [name for name in EVERY if not exists(name) and reason(name) is None]


def test_what_is_left_out_is_missing():
    assert not [name for name in EVERY if exists(name) and reason(name) is not None]


UNLISTED = ("paddle.fluid", "paddle._C_ops.add")
"""Names that the lists lack."""


def test_everything_in_the_table_is_a_name_of_paddle():
    used = json.loads((DATA / "used_names.json").read_text())["names"]  # private ones among them
    inner = json.loads((DATA / "distributed_signatures.json").read_text())["signatures"]
    heads = {head for name in [*EVERY, *used, *inner, *UNLISTED] for head in heads_of(name)}
    known = [pattern for names in LEFT_OUT.values() for pattern in names.split()]
    assert not [pattern for pattern in known if not filter_names(heads, pattern)]


def test_a_name_that_is_left_out_says_why():
    """Of the module, of the first part that is missing, or of the name itself."""
    for name in EVERY:
        if reason(name) is not None and not name.startswith("paddle.Tensor."):
            with pytest.raises((AttributeError, NotImplementedError)) as caught:
                find(name)()
            subject, _, why = str(caught.value).partition(": ")
            assert name == subject or name.startswith(f"{subject}.")
            assert why.partition("\n")[0] == reason(subject)


@pytest.mark.parametrize(
    "line",
    [
        "import minipaddle.fft",
        "import minipaddle.fft as fft",
        "from minipaddle import fft",
        "from minipaddle.fft import rfft",
        "from minipaddle import complex64",
        "import minipaddle.signal",
    ],
)
def test_an_import_says_why(line):
    with pytest.raises(ImportError, match="complex numbers are not supported"):
        exec(line)


def test_other_imports_fail_as_ever():
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        exec("import minipaddle.nowhere")
    assert find_spec("minipaddle.nowhere") is None
    assert not hasattr(paddle, "fft")


def test_a_method_that_is_left_out_says_why():
    with pytest.raises(AttributeError, match=r"Tensor\.to_dense: sparse tensors are not supported"):
        paddle.ones([1]).to_dense  # noqa: B018


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("paddle.zero", "paddle.zeros"),
        ("paddle.Matmul", "paddle.matmul"),
        ("paddle.nn.Linaer", "paddle.nn.Linear"),
        ("paddle.linalg.cholsky", "paddle.linalg.cholesky"),
        ("paddle.Tensor.unsqeeze", "Tensor.unsqueeze"),
    ],
)
def test_a_misspelt_name_is_pointed_to_its_neighbour(name, near):
    *path, last = name.split(".")
    holder = paddle.ones([1]) if path[-1] == "Tensor" else find(".".join(path))
    with pytest.raises(AttributeError, match=f"the nearest name is {re.escape(near)}$"):
        getattr(holder, last)


def test_private_names_are_plainly_missing():
    for holder in (paddle, paddle.ones([1])):
        assert not hasattr(holder, "_nothing")
        assert not hasattr(holder, "__array_struct__")


# ---- signatures ------------------------------------------------------------------------------

EXTRAS = {"out", "device", "requires_grad", "pin_memory", "dump_backward_graph_path"}
"""Parameters that Paddle 3 took over from PyTorch, most of them keyword-only. They are refused by
name: by Python, or by the function where `out=None` may be said (see below).
"""

OFF_THE_TAPE = "Paddle's class shows no parameter, but `paddle.no_grad(f)` works there too"
SAME_AS_FUNCTION = "an in-place function takes what the one out of place takes"
A_WORD = "ReduceOp.SUM is the word that programs show, not a number"


DEVIATIONS = {
    "paddle.jit.to_static": "backend is None: there is no CINN here",
    "paddle.Tensor": "Paddle's shows *args; this one is to_tensor's",
    "paddle.Tensor.clone": "the function paddle.clone, which has a `name`",
    "paddle.Tensor.cumprod_": SAME_AS_FUNCTION,
    "paddle.Tensor.numpy": "Paddle's C++ shows no parameter, but takes `blocking`",
    "paddle.Tensor.softmax": "Paddle 3.3 took PyTorch's `dim`; both names work here",
    "paddle.amp.debugging.DebugMode": "an Enum, of which newer Pythons show other parameters",
    "paddle.distributed.SplitPoint": "an Enum, of which newer Pythons show other parameters",
    "paddle.autograd.enable_grad": OFF_THE_TAPE,
    "paddle.autograd.no_grad": OFF_THE_TAPE,
    "paddle.Tensor.repeat": "Paddle's decorator takes numbers too, and hides the star",
    "paddle.nn.Parameter": "Paddle's shows *args; this one is what layers make",
    "paddle.softmax": "the function of paddle.nn.functional; Paddle shows PyTorch's `dim`",
    "paddle.device.set_rng_state": "the function paddle.set_rng_state",
    "paddle.cumprod_": SAME_AS_FUNCTION,
    "paddle.distributed.all_reduce": A_WORD,
    "paddle.distributed.reduce": A_WORD,
    "paddle.distributed.reduce_scatter": A_WORD,
    "paddle.enable_grad": OFF_THE_TAPE,
    "paddle.io.SequenceSampler": "can be made without data, as its base class",
    "paddle.load": "of Paddle's **configs only return_numpy means something here",
    "paddle.meshgrid": "Paddle's decorator hides the star",
    "paddle.no_grad": OFF_THE_TAPE,
    "paddle.static.Variable": "the tensor's class: programs ask isinstance, and make none",
}
"""name -> why its signature differs."""


def ours(name: str) -> list[tuple]:
    """(name, kind, default or `empty`) of each parameter, of a method without the tensor."""
    parameters = list(inspect.signature(find(name)).parameters.values())
    if name.startswith("paddle.Tensor.") and parameters[0].kind.name != "VAR_POSITIONAL":
        del parameters[0]
    return [(p.name, p.kind.name.lower(), p.default) for p in parameters if p.name not in EXTRAS]


def theirs(name: str) -> list[tuple]:
    empty = inspect.Parameter.empty
    return [
        (
            p["name"],
            p["kind"].replace("positional_only", "positional_or_keyword"),
            value(p["default"]) if "default" in p else empty,
        )
        for p in PADDLE[name]
        if p["name"] not in EXTRAS
    ]


def value(text: str):
    """The default that a `repr` shows, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def same(a, b) -> bool:
    """Is parameter `a` of ours parameter `b` of Paddle's?"""
    shown = str(a[2]), repr(a[2])
    return a[:2] == b[:2] and (a[2] == b[2] or b[2] in shown or list_of(a[2]) == list_of(b[2]))


def list_of(x):
    return list(x) if isinstance(x, tuple) else x


CALLABLE = sorted(n for n in PADDLE if exists(n) and callable(find(n)) and n not in DEVIATIONS)


def written(parameters) -> str:
    """Parameters as a signature shows them."""
    empty, stars = inspect.Parameter.empty, {"var_positional": "*", "var_keyword": "**"}
    parts = []
    for name, kind, default in parameters:
        if kind == "keyword_only" and "*" not in parts:
            parts.append("*")
        shown = stars.get(kind, "") + name
        parts.append(shown if default is empty else f"{shown}={default}")
    return f"({', '.join(parts)})"


def alike(name: str) -> bool:
    a, b = ours(name), theirs(name)
    return len(a) == len(b) and all(map(same, a, b))


def test_signatures():
    assert len(CALLABLE) > 1500
    differ = [name for name in CALLABLE if not alike(name)]
    shown = [f"{n}{written(ours(n))}\n  Paddle: {written(theirs(n))}" for n in differ]
    assert not differ, "\n".join(shown)


def test_every_deviation_is_one():
    assert not [name for name in DEVIATIONS if alike(name)]


# ---- out -------------------------------------------------------------------------------------

WRITES = """add subtract divide clip exp tanh round multiply maximum lerp bitwise_and bitwise_not
    sum mean prod max amin all logsumexp"""
TAKES_OUT = "cumsum norm"


@pytest.mark.parametrize("function", [np.sum, np.mean, np.prod, np.max, np.min, np.all, np.any])
def test_numpy_reduces_a_tensor(function):
    """NumPy calls the method of the same name, with `out=None`."""
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    assert isinstance(function(x), paddle.Tensor)
    assert function(x).item() == function(x.numpy())
    assert function(x, axis=1).tolist() == function(x.numpy(), axis=1).tolist()


@pytest.mark.parametrize("name", TAKES_OUT.split())
def test_out_is_none_or_refused_by_name(name):
    function, x = getattr(paddle, name), paddle.ones([2, 2])
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    given = [x] * len(needed)
    assert isinstance(function(*given, out=None), paddle.Tensor)
    with pytest.raises(ValueError, match=rf"^{name}\(out=...\) is not supported"):
        function(*given, out=x)


@pytest.mark.parametrize("name", WRITES.split())
def test_operators_write_into_out(name):
    function = getattr(paddle, name)
    x = paddle.to_tensor([5, 6] if "bitwise" in name else [0.5, 2.0])
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    given = [x] * len(needed)
    out = paddle.zeros_like(function(*given))
    assert function(*given, out=out) is out
    assert out.tolist() == function(*given).tolist()
    with pytest.raises(TypeError, match="expected: a tensor"):
        function(*given, out=x.numpy())


@pytest.mark.parametrize("call", [lambda f, x: f(x, 1, None, 2), lambda f, x: f(x, 1, decimals=1)])
def test_an_argument_too_many_is_refused(call):
    with pytest.raises(TypeError, match="too many arguments, or one twice; it takes"):
        call(paddle.round, paddle.ones([2]))
