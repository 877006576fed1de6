"""One network made smaller stage by stage, each saved and loaded: `./run bench compression`.

The residual network of `compression_stages` reads rendered letters: float32, O2 in bfloat16, 8
bits, half of the work pruned, pruned and 8 bits. Another process loads the files; its scores must
be those of the network itself, for whole numbers to the last bit, on the interpreter and as C. The
table has the held-out letters that are read right, the bytes of the files, and the median time of a
call, all rows in turn (processor time on one thread, by the clock on several), beside ONNX Runtime,
torch and torchao with the same weights.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from rich.console import Console
from rich.table import Table

import minipaddle as paddle

from . import compression_stages as user
from .letters import SIDE, letters
from .quantized_times import peer
from .timing import interleaved

BATCHES = 1, 32


def read_elsewhere(folder: Path, backend: str) -> dict[str, np.ndarray]:
    """The scores that another process reads from the files of a folder."""
    environment = os.environ | {"MINIPADDLE_BACKEND": backend}
    module = "tests.benchmarks.compression_stages"
    subprocess.run([sys.executable, "-m", module, str(folder)], env=environment, check=True)
    return {file.stem: np.load(file) for file in folder.glob("*.npy")}


def same_bits(nets: dict, folder: Path, images) -> dict[str, np.ndarray]:
    """Whether saved networks give what the networks give, eagerly; the scores from the files."""
    found = {backend: read_elsewhere(folder, backend) for backend in ("interpreter", "native")}
    for name, net in nets.items():
        with paddle.no_grad():
            eager = net(images).numpy()
        for backend, scores in found.items():
            if name.endswith("int8"):
                np.testing.assert_array_equal(scores[name], eager, f"{name}, {backend}")
            off = np.abs(scores[name] - eager).max() / np.abs(eager).max()
            print(f"{name}, {backend}: saved, loaded elsewhere; {off:.1e} from eager execution")
    return found["native"]


def ours(path: str):
    """A function of an array that runs a saved network."""
    net = paddle.jit.load(path)

    def run(x: np.ndarray) -> np.ndarray:
        with paddle.no_grad():
            return net(paddle.to_tensor(x)).numpy()

    return run


def rows(nets: dict, data, folder: Path, threads: int) -> dict:
    """{(stage, framework): (a function of an array that gives scores, bytes of its files)}."""
    found = {}
    for name in nets:
        size = sum(file.stat().st_size for file in folder.glob(f"{name}.pd*"))
        found[name, "minipaddle"] = ours(str(folder / name)), size
    images = data[0][: user.CHECKED].numpy()
    if peer("torch") and peer("onnxruntime"):
        from . import compression_peers as peers

        for stage, small in (("float32", "int8"), ("pruned", "pruned int8")):
            at = folder / stage
            at.mkdir()
            named = {"float32": stage, "int8": small, "bfloat16": "O2"}
            made = {"torch": peers.of_torch(nets[stage], images, at)}
            made["ONNX Runtime"] = peers.of_onnx_runtime(nets[stage], images, at, threads)
            if peer("torchao"):
                made["torchao, compiled"] = peers.of_torchao(nets[stage], images, at)
            for framework, kinds in made.items():
                for kind, row in kinds.items():
                    if (stage, kind) != ("pruned", "bfloat16"):
                        found[named[kind], framework] = row
    return found


def run(threads: int, arguments) -> None:
    backend = os.environ.get("MINIPADDLE_BACKEND")
    os.environ["MINIPADDLE_BACKEND"] = "native"  # nothing compiles in the background
    try:
        with tempfile.TemporaryDirectory() as folder:
            Console(width=110).print(table_of(Path(folder), threads))
    finally:
        os.environ["MINIPADDLE_BACKEND"] = backend or ""


def table_of(folder: Path, threads: int) -> Table:
    """All stages, trained here, and the peers."""
    data, (images, labels) = letters("train"), letters("test")
    if peer("torch"):
        peer("torch").set_num_threads(threads)
    paddle.seed(1)
    nets = user.stages(user.network(), data)
    for name, net in nets.items():
        user.save(net, folder / name, [1, SIDE, SIDE])
    scores = same_bits(nets, folder, images)
    found = rows(nets, data, folder, threads)
    times = {}
    for n in BATCHES:
        x = images[:n].numpy()
        calls = {row: partial(call, x) for row, (call, _) in found.items()}
        clock = process_time if threads == 1 else perf_counter
        times[n] = interleaved(calls, rounds=25, title=f"batches of {n}", clock=clock)
    table = Table(title="Letters: one network, stage by stage")
    for head in ("", "by", "right, %", "bytes", *(f"ms, batch {n}" for n in BATCHES)):
        table.add_column(head, justify="left" if head in ("", "by") else "right")
    order = list(dict.fromkeys([*nets, *(stage for stage, _ in found)]))
    for stage, framework in sorted(found, key=lambda row: order.index(row[0])):
        call, size = found[stage, framework]
        given = scores[stage] if framework == "minipaddle" else call(images.numpy())
        right = (given.argmax(1) == labels.numpy()).mean()
        cells = [f"{1e3 * times[n][stage, framework]:.3f}" for n in BATCHES]
        table.add_row(stage, framework, f"{100 * right:.1f}", f"{size:,}", *cells)
    return table
