"""Files of ONNX with changed bytes: each one loads, or is refused with a ValueError.

`python -m tests.onnx.fuzz --files 5000` changes bytes of files, and fields of what they hold:
sizes, names, attributes, dtypes. A file that takes longer than `SECONDS` counts as one that hangs;
the process may have `ROOM` bytes more than it has at the start.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import onnx

import minipaddle as paddle
from minipaddle.static import InputSpec

FOLDER = Path(__file__).parents[1] / "data" / "onnx"
SECONDS, ROOM = 20, 4 << 30
INTS = (0, 1, -1, 2, 3, 7, 100, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63 - 1, -(2**63))
FLOATS = (0.0, -1.0, 1e30, float("inf"), float("nan"), 1e-30, 3.5)


class Late(BaseException):
    """A file takes too long."""


class Net(paddle.nn.Layer):
    """A branch, a loop, and sizes that stay open."""

    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:
            x = self.linear(x)
        else:
            x = x - 1
        k = paddle.zeros([])
        while k < x.shape[0]:
            x, k = x * 0.5, k + 1
        return x.reshape([-1, 2]), paddle.concat([x, x], 0)


class Many(paddle.nn.Layer):
    """Movements, reductions and searches of a matrix."""

    def forward(self, x):
        top, at = paddle.topk(x, 2, axis=1)
        y = paddle.where(x > 0, paddle.cumsum(x, axis=1), paddle.tile(x[:, :1], [1, 4]))
        y = paddle.concat(paddle.split(y, 2, axis=1)[::-1], axis=1)
        y = paddle.einsum("ij,kj->ik", y, y) + paddle.expand(top.sum(1, keepdim=True), [2, 2])
        hot = paddle.nn.functional.one_hot(at, 4).mean(1)
        return paddle.nn.functional.pad(y, [1, 1]), paddle.gather(x, at[:, 0] * 0, axis=0), hot


def exported() -> dict[str, tuple]:
    """Networks to export, and the shapes of their inputs."""
    nn = paddle.nn
    return {
        "loop": (Net(), [None, 4]),
        "image": (
            nn.Sequential(
                nn.Conv2D(1, 2, 3, padding=1), nn.BatchNorm2D(2), nn.ReLU(), nn.MaxPool2D(2),
                nn.Conv2DTranspose(2, 1, 2, stride=2), nn.AdaptiveAvgPool2D(1), nn.Flatten(),
            ).eval(),
            [None, 1, 8, 8],
        ),
        "encoder": (nn.TransformerEncoderLayer(8, 2, 16).eval(), [None, 3, 8]),
        "many": (Many(), [2, 4]),
        "norms": (
            nn.Sequential(
                nn.GroupNorm(2, 4), nn.InstanceNorm2D(4), nn.AvgPool2D(2), nn.GELU(), nn.PReLU(),
                nn.Hardswish(), nn.PixelShuffle(2), nn.Softmax(1), nn.Flatten(), nn.LayerNorm(64),
            ).eval(),
            [None, 4, 8, 8],
        ),
        "gru": (nn.GRU(3, 2), [2, 3, 3]),
        "recurrent": (nn.LSTM(3, 4, direction="bidirectional"), [None, 3, 3]),
        "resized": (nn.Sequential(nn.Upsample(scale_factor=2), nn.Pad2D(1)), [None, 1, 3, 3]),
    }  # fmt: skip


def sources() -> dict[str, bytes]:
    """The files that are changed."""
    found = {p.name: p.read_bytes() for p in sorted(FOLDER.glob("*.onnx"))}
    with tempfile.TemporaryDirectory() as work, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (net, shape) in exported().items():
            path = str(Path(work) / f"{name}.onnx")
            paddle.onnx.export(net, path, input_spec=[InputSpec(shape)])
            found[f"{name}.onnx"] = Path(path).read_bytes()
    found["functions.onnx"] = with_functions()
    return found


def with_functions() -> bytes:
    """A file whose functions call each other, with constants to compute while it is read."""
    h = onnx.helper
    sets = [h.make_opsetid("", 17), h.make_opsetid("own", 1)]
    tensor = onnx.numpy_helper.from_array
    inner = h.make_function(
        "own", "Inner", ["a", "s"], ["c"],
        [h.make_node("Reshape", ["a", "s"], ["b"]), h.make_node("Neg", ["b"], ["c"])], sets,
    )  # fmt: skip
    outer = h.make_function(
        "own", "Outer", ["a", "s"], ["c"],
        [h.make_node("Inner", ["a", "s"], ["b"], domain="own"), h.make_node("Exp", ["b"], ["c"])],
        sets,
    )  # fmt: skip
    nodes = [
        h.make_node("Constant", [], ["k"], value=tensor(np.array([2, 3]))),
        h.make_node("ConstantOfShape", ["k"], ["fill"], value=tensor(np.ones(1, "float32"))),
        h.make_node("Concat", ["k", "one"], ["kk"], axis=0),
        h.make_node("Tile", ["fill", "k"], ["tiled"]),
        h.make_node("Pad", ["fill", "pads"], ["padded"]),
        h.make_node("Range", ["start", "stop", "step"], ["r"]),
        h.make_node("MatMul", ["tiled", "w"], ["mm"]),
        h.make_node("Expand", ["r", "kk"], ["wide"]),
        h.make_node("Outer", ["x", "kk"], ["z"], domain="own"),
        h.make_node("Add", ["z", "wide"], ["y"]),
    ]  # fmt: skip
    known = {
        "one": np.array([1]), "pads": np.array([1, 0, 0, 2]), "start": np.float32(0),
        "stop": np.float32(1), "step": np.float32(1), "w": np.ones((9, 2), "float32"),
    }  # fmt: skip
    value = h.make_tensor_value_info
    graph = h.make_graph(
        nodes, "g", [value("x", 1, [6])], [value("y", 1, [2, 3, 1]), value("mm", 1, [4, 2])],
        [tensor(np.asarray(a), n) for n, a in known.items()],
    )  # fmt: skip
    model = h.make_model(graph, opset_imports=sets, functions=[outer, inner], ir_version=10)
    return model.SerializeToString()


# ---- changes ---------------------------------------------------------------------------------


def with_other_bytes(data: bytes, draw: random.Random) -> bytes:
    """Some bytes changed, left out, doubled, or cut off."""
    copy = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        place = draw.randrange(len(copy)) if draw.random() < 0.5 else draw.randrange(
            min(len(copy), 4000))  # fmt: skip
        match draw.randrange(6):
            case 0 | 1:
                copy[place] = draw.randrange(256)
            case 2 | 3:
                copy[place] ^= 1 << draw.randrange(8)
            case 4:
                del copy[place : place + draw.choice([1, 2, 8, 100])]
            case 5:
                copy[place:place] = copy[place : place + draw.choice([1, 4, 40])]
        if not copy:
            break
    return bytes(copy[: draw.randrange(len(copy))] if copy and draw.random() < 0.03 else copy)


def fields(message, found: list) -> list:
    """Every message inside a message, with itself."""
    found.append(message)
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for each in value if hasattr(value, "__len__") else [value]:
                fields(each, found)
    return found


def with_other_fields(data: bytes, draw: random.Random) -> bytes:
    """Some fields of the proto changed: numbers, texts, what is repeated."""
    model = onnx.load_model_from_string(data)
    for _ in range(draw.choice([1, 1, 2, 5])):
        messages = [m for m in fields(model, []) if m.ListFields()]
        names = [t for m in messages for t in (getattr(m, "name", ""),) if t]
        message = draw.choice(messages)
        field, value = draw.choice(message.ListFields())
        many = hasattr(value, "__len__") and not isinstance(value, str | bytes)
        if field.type == field.TYPE_MESSAGE:
            if not many:
                message.ClearField(field.name)
            elif draw.random() < 0.5:
                del value[draw.randrange(len(value))]
            else:
                value.add().CopyFrom(draw.choice(value))
            continue
        if many:
            place = draw.randrange(len(value))
            value[place] = other(value[place], names, draw)
        else:
            setattr_or_clear(message, field.name, other(value, names, draw))
    return model.SerializeToString()


def setattr_or_clear(message, name: str, value) -> None:
    try:
        setattr(message, name, value)
    except ValueError:  # a number that the field cannot have
        message.ClearField(name)


def other(value, names: list[str], draw: random.Random):
    """Another value of the same kind."""
    if isinstance(value, str):
        return draw.choice([*names, "", "x" * 300, value[:-1], "\u00e9", "Loop", "If", "Concat"])
    if isinstance(value, bytes):
        return draw.choice(
            [b"", value[:-1], value + b"\0", bytes(len(value)), b"\xff" * len(value)]
        )
    if isinstance(value, float):
        return draw.choice(FLOATS)
    return min(max(draw.choice([*INTS, value + 1, value - 1, -value]), -(2**63)), 2**63 - 1)


# ---- the proof -------------------------------------------------------------------------------


def changed(data: bytes, seed: int) -> bytes:
    """A file with changes that a seed determines."""
    draw = random.Random(seed)
    while True:
        try:
            return (with_other_fields if draw.random() < 0.6 else with_other_bytes)(data, draw)
        except (ValueError, OverflowError):  # of protobuf, for a number that a field cannot have
            continue


def outcome(path: Path) -> str:
    """What loading a file does: "loads", "refused", or how it went wrong."""
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        paddle.onnx.load(path)
    except ValueError as error:
        said = str(error)
        named = path.name in said or "paddle.onnx.load" in said
        return "refused" if named else f"a message without the file: {said[:200]}"
    except Late:
        return "hangs\n" + traceback.format_exc()[-700:]
    except BaseException as error:
        frames = traceback.format_exc().splitlines()[-5:-1]
        return f"{type(error).__name__}: {str(error)[:200]}\n" + "\n".join(frames)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return "loads"


def stop(*_):
    raise Late


def limit_memory() -> None:
    """Let this process have `ROOM` bytes more, and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM,) * 2)


def main() -> int:
    """Try changed files; print what went wrong with its seed and file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    files, seen, wrong = sources(), Counter(), 0
    limit_memory()
    names = sorted(files)
    with tempfile.TemporaryDirectory() as work, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(work) / "net.onnx"
        for seed in range(options.first, options.first + options.files):
            name = names[seed % len(names)]
            path.write_bytes(changed(files[name], seed))
            found = outcome(path)
            seen[found.partition("\n")[0][:60]] += 1
            if found not in ("loads", "refused"):
                wrong += 1
                print(f"seed {seed}, {name}: {found}", flush=True)
    print(f"{options.files:,} files, {wrong} wrong: {dict(seen.most_common(8))}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
