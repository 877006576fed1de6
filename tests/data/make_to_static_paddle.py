"""Writes to_static_paddle.json: what real Paddle's `to_static(full_graph=True)` makes of the
functions and models in tests/jit, and the values its eager mode gives for the same weights.

Needs real Paddle (tests/requirements-peers.txt): `python tests/data/make_to_static_paddle.py`. What
follows names cases, as `branches.if_else` or a part of it: only these are asked, others stay.
The verdicts: "same" as Paddle's eager mode, "wrong", "error: …", "hang", and "eager: …" where its
eager mode does not run either.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.util
import inspect
import json
import os
import re
import select
import signal
import sys
import textwrap
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 25
"""So long one case may take before it is called a hang."""


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """`import minipaddle.x` gives `paddle.x`."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "minipaddle":
            return importlib.util.spec_from_loader(name, self)
        return None

    def create_module(self, spec):
        return importlib.import_module(spec.name.replace("minipaddle", "paddle", 1))

    def exec_module(self, module):
        """It is there already."""


def in_child(function):
    """What `function()` gives, in a process of its own; "hang" if it does not come back."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 1)
            os.dup2(null.fileno(), 2)
        signal.alarm(SECONDS + 10)
        os.write(writer, json.dumps(function()).encode())
        os._exit(0)
    os.close(writer)
    text = b""
    while True:
        ready, _, _ = select.select([reader], [], [], SECONDS)
        chunk = os.read(reader, 1 << 16) if ready else None
        if not chunk:
            break
        text += chunk
    os.close(reader)
    if chunk is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if text:
        return json.loads(text)
    return {"verdict": "hang" if chunk is None else f"error: ended by signal {status}"}


def reason(error) -> str:
    """The line of a message that says most."""
    lines = [x.strip() for x in str(error).splitlines() if x.strip()]
    named = [x for x in lines if type(error).__name__ in x or x.startswith("(")]
    return f"{type(error).__name__}: {(named or lines or [''])[-1][:150]}"


def judged(eager, static) -> dict:
    """Run both and compare; each gives a list of what NumPy can compare."""
    try:
        expected = eager()
    except Exception as error:
        return {"verdict": f"eager: {reason(error)}"}
    try:
        found = static()
    except BaseException as error:
        return {"verdict": f"error: {reason(error)}", "values": summary(expected)}
    return {
        "verdict": "same" if equal(expected, found) else "wrong",
        "values": summary(expected),
    }


def equal(expected, found) -> bool:
    import numpy as np

    if len(expected) != len(found):
        return False
    for a, b in zip(expected, found, strict=True):
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            a, b = (np.asarray(x) for x in (a, b))
            same = a.shape == b.shape and a.dtype.kind in "fiub" and b.dtype.kind in "fiub"
            if not same or not np.allclose(a, b, rtol=1e-4, atol=1e-5):
                return False
        elif type(a) is not type(b) or a != b:
            return False
    return True


def summary(values) -> list:
    """For each array its sum and the sum of its squares."""
    import numpy as np

    found = []
    for x in values:
        if isinstance(x, np.ndarray) and x.dtype.kind in "fiub":
            wide = x.astype("float64")
            found.append([float(f"{v:.7g}") for v in (wide.sum(), (wide**2).sum())])
        else:
            found.append(None)
    return found


def arrays(value) -> list:
    """The leaves, tensors as arrays."""
    import paddle

    from tests.jit import models

    return [x.numpy() if isinstance(x, paddle.Tensor) else x if isinstance(x, int | float | str)
            else type(x).__name__ for x in models.leaves(value)]  # fmt: skip


def of_model(model) -> dict:
    import paddle

    from tests.jit import models

    def run(convert, training, shift=0):
        net, found = convert(model.net()), []
        if isinstance(net, paddle.nn.Layer):
            net.train() if training else net.eval()
        for seed, call in enumerate(model.calls):
            paddle.seed(seed + shift)
            xs = models.inputs(call, seed)
            y = net(*xs)
            found += arrays(y)
            if training and models.floats(y):
                models.loss_of(y).backward()
                found += [x.grad for x in models.floats(xs)]
        return [
            x if not isinstance(x, paddle.Tensor) else x.numpy() if x.numpy().any() else None
            for x in found
        ]

    def whole(convert):
        """Outputs in eval mode; if nothing is random, gradients in training mode too."""
        return run(convert, False) + (run(convert, True) if sure() else [])

    def sure() -> bool:
        return equal(run(lambda net: net, True), run(lambda net: net, True, 1))

    return judged(lambda: whole(lambda net: net), lambda: whole(to_static))


def of_training(training) -> dict:
    import paddle

    from tests.jit import models

    def run(convert):
        step, layers = training.made()
        models.fill([w for layer in layers for w in layer.parameters()])
        step = convert(step)
        paddle.seed(5)
        found = []
        for k in range(3):
            xs = models.inputs(training.inputs, k)
            for x in models.tensors(xs):
                x.stop_gradient = True
            found += arrays(step(*xs))
        return found + [w.numpy() for layer in layers for w in layer.parameters()]

    return judged(lambda: run(lambda step: step), lambda: run(to_static))


def of_example(example) -> dict:
    from tests.jit.examples import given

    def run(function):
        return [x for call in example.calls for x in arrays(function(*given(call)))]

    return judged(lambda: run(example.function), lambda: run(to_static(example.function)))


def without_registration(function, dedent=True) -> str:
    """The source Paddle is to convert: it would apply the decorators that register a case again."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.decorator_list = [
                d for d in node.decorator_list
                if not re.match(r"(example|model|training)\(", ast.unparse(d))
            ]  # fmt: skip
    return ast.unparse(tree)


def to_static(function):
    import paddle

    return paddle.jit.to_static(function, full_graph=True)


def main():
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(ROOT))
    sys.meta_path.insert(0, Alias())
    import paddle
    from paddle.jit.dy2static import program_translator

    program_translator.func_to_source_code = without_registration
    from tests.jit import examples, models

    models.collect()
    jobs = [(m.name, of_model, m) for m in models.MODELS]
    jobs += [(t.name, of_training, t) for t in models.TRAININGS]
    jobs += [(e.name, of_example, e) for e in examples.examples()]
    wanted = sys.argv[1:]
    path = Path(__file__).with_name("to_static_paddle.json")
    found = json.loads(path.read_text())["cases"] if wanted and path.exists() else {}
    for name, judge, case in jobs:
        if not wanted or any(w in name for w in wanted):
            found[name] = in_child(lambda: judge(case))  # noqa: B023
            print(name, found[name]["verdict"], flush=True)
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(found.items()))
    path.write_text(f'{{"paddle_version": "{paddle.__version__}", "cases": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
