"""Record what Paddle makes of edge values: `python tests/data/make_paddle_edges.py CALLS`.

CALLS is written by `python -m tests.ops.test_edges CALLS` where MiniPaddle is: the operators, their
attributes and the places to differentiate by. The answers go to `paddle_edges.json`: of each call
and dtype the values, then the derivatives, as hexadecimal bytes. An operator that raises has none.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path

import paddle

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))
from edges import REDUCTIONS, answers, edges, reduction, rows

HERE = Path(__file__).parent


def make(a, wants):
    return paddle.to_tensor(a, stop_gradient=not wants)


def read(t):
    return t.numpy()


def called(name, attrs, *xs):
    function = getattr(paddle, name, None) or getattr(paddle.nn.functional, name, None)
    return function(*xs, **attrs)


def of_rows(name, dtype) -> list:
    """For each row [value, derivative], or None where Paddle raises or dies."""
    found = []
    for row in rows(dtype):
        ends = os.pipe()
        child = os.fork() if row.size == 0 else None  # Paddle may die of an empty tensor
        if child:
            os.close(ends[1])
            with os.fdopen(ends[0]) as pipe:
                found.append(json.loads(pipe.read() or "null"))
            os.waitpid(child, 0)
            continue
        try:
            got = [
                a.tobytes().hex() for a in answers(read, make, reduction(paddle, name), (0,), [row])
            ]
        except Exception:
            got = None
        if child == 0:
            os.write(ends[1], json.dumps(got).encode())
            os._exit(0)
        found.append(got)
    return found


def main(calls: str) -> None:
    found = {"calls": {}, "rows": {}}
    for key, name, attrs, count, wrt in json.loads(Path(calls).read_text()):
        function = partial(called, name, attrs)
        for dtype in ("float64", "float32"):
            arrays = edges(dtype, count)
            try:
                got = answers(read, make, function, wrt, arrays)
            except Exception as error:
                print(key, dtype, type(error).__name__)
                continue
            found["calls"][f"{key} {dtype}"] = [a.tobytes().hex() for a in got]
    for name in REDUCTIONS:
        found["rows"] |= {
            f"{name} {dtype}": of_rows(name, dtype) for dtype in ("float64", "float32")
        }
    (HERE / "paddle_edges.json").write_text(json.dumps(found) + "\n")


main(sys.argv[1])
