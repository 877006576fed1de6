"""Saved models at batch 1: our predictor beside ONNX Runtime and paddle.inference.

Each model has the same weights everywhere, and the answers must agree before anything is timed. A
run takes an array and gives one: ours and Paddle's by handles, with their copies. All run in turn
in one process; the figure is the least time of many runs (processor time on one thread). With
`--trials 64`, `paddle.tune` looks for faster kernels first, as a user would do once on a machine.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import minipaddle as paddle

from .quantized_times import images, least, peer
from .workloads import gpt

ROUNDS, CALLS = 60, 20
FEWER = 1e-3
"""Seconds of a run from which on a round is one call."""
CLOSE = {"rtol": 2e-3, "atol": 2e-4}


def run(threads: int, arguments) -> None:
    parser = argparse.ArgumentParser(prog="./run bench inference", description=__doc__)
    parser.add_argument("--trials", type=int, default=0, help="for paddle.tune, of each model")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of names of models")
    options = parser.parse_args(arguments)
    table = Table(
        "batch 1", "ours, µs", "without copies", "ONNX Runtime", "paddle.inference", "ours / best",
        title=f"Inference of saved models, {threads} thread(s), {options.trials} trials",
    )  # fmt: skip
    for name, (make, given) in models().items():
        if not any(part.lower() in name.lower() for part in options.only):
            continue
        if options.trials:
            net = make(paddle)
            with paddle.no_grad():
                paddle.tune(lambda *xs, net=net: net(*xs), *map(paddle.to_tensor, given),
                            trials=options.trials)  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            table.add_row(name, *cells(times(make, given, folder, threads)))
    Console(width=110).print(table)


def models() -> dict:
    """For each model a function of a framework, and its inputs."""

    def image(name: str, net, shape):
        def make(framework):
            if framework is paddle:
                return net.eval()
            other = getattr(framework.vision.models, name)()
            other.set_state_dict({k: x.numpy() for k, x in net.state_dict().items()})
            return other.eval()

        return make, [np.random.default_rng(0).normal(size=shape).astype("float32")]

    found = {
        title: image(name, net, shape)
        for (title, (net, shape)), name in zip(
            images().items(), ("resnet18", "mobilenet_v2", "LeNet"), strict=True
        )
    }
    text = gpt.net(paddle).eval()

    def language(framework):
        if framework is paddle:
            return text
        other = gpt.net(framework).eval()
        other.set_state_dict({k: x.numpy() for k, x in text.state_dict().items()})
        return other

    return found | {"GPT 4 × 128, 64 tokens": (language, list(gpt.one_text()))}


def times(make, given: list, folder: str, threads: int) -> dict[str, float]:
    """The seconds of a run of each library."""
    runs, answers = {}, {}
    ours, without = of_paddle(paddle, make, given, f"{folder}/ours", threads)
    runs["ours"], answers["ours"] = ours, ours()
    if peer("onnxruntime"):
        runs["ort"] = of_onnx(make, given, folder, threads)
        answers["ort"] = runs["ort"]()
    if real := peer("paddle"):
        runs["paddle"], _ = of_paddle(real, make, given, f"{folder}/theirs", threads)
        answers["paddle"] = runs["paddle"]()
    for name, answer in answers.items():
        np.testing.assert_allclose(answer, answers["ours"], **CLOSE, err_msg=name)
    runs["without"] = without
    first = least(runs, threads, 3)
    calls = {name: CALLS if seconds < FEWER else 1 for name, seconds in first.items()}
    many = {name: repeated(each, calls[name]) for name, each in runs.items()}
    return {name: t / calls[name] for name, t in least(many, threads, ROUNDS).items()}


def repeated(run: Callable, count: int) -> Callable:
    def runs():
        for _ in range(count):
            run()

    return runs


def of_paddle(framework, make, given: list, prefix: str, threads: int) -> tuple:
    """A function that copies inputs to handles, runs, and copies the output; and the run alone."""
    net = make(framework)
    kind = framework.static.InputSpec
    specs = [kind(list(a.shape), str(a.dtype), f"x{k}") for k, a in enumerate(given)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        framework.jit.save(net, prefix, input_spec=specs)
    program = ".pdmodel" if os.path.exists(f"{prefix}.pdmodel") else ".json"
    config = framework.inference.Config(f"{prefix}{program}", f"{prefix}.pdiparams")
    config.set_cpu_math_library_num_threads(threads)
    config.disable_glog_info()
    if framework is paddle:
        config.enable_cinn()
    predictor = framework.inference.create_predictor(config)
    inputs = [predictor.get_input_handle(name) for name in predictor.get_input_names()]
    output = predictor.get_output_handle(predictor.get_output_names()[0])

    def call():
        for handle, array in zip(inputs, given, strict=True):
            handle.copy_from_cpu(array)
        predictor.run()
        return output.copy_to_cpu()

    return call, predictor.run


def of_onnx(make, given: list, folder: str, threads: int) -> Callable:
    """A function that runs the model in ONNX Runtime."""
    from . import onnx_models as om

    if len(given) > 1:
        import torch

        ours, net = make(paddle).state_dict(), gpt.net(torch)
        linear = {n for n, m in net.named_modules() if isinstance(m, torch.nn.Linear)}
        state = {
            k: torch.from_numpy(np.array(x.numpy().T if k.removesuffix(".weight") in linear
                                         and k.endswith("weight") else x.numpy()))
            for k, x in ours.items()
        }  # fmt: skip
        net.load_state_dict(state)
        return text_in_onnx(om, net.eval(), given, f"{folder}/text.onnx", threads)
    net = make(paddle)
    program = paddle.jit.to_static(lambda x: net(x), backend="interpreter")
    with paddle.no_grad():
        program(paddle.to_tensor(given[0]))
    path = f"{folder}/net.onnx"
    om.onnx.save(om.Model(program.main_program).proto, path)
    run = om.session(path, threads)
    return lambda: run(given[0])


def text_in_onnx(om, net, given: list, path: str, threads: int) -> Callable:
    """A torch model in ONNX Runtime."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xs = tuple(map(torch.from_numpy, given))
        torch.onnx.export(net, xs, path, dynamo=False, opset_version=om.OPSET)
    session = om.load(path, threads)
    feed = {i.name: a for i, a in zip(session.get_inputs(), given, strict=True)}
    return lambda: session.run(None, feed)[0]


def cells(found: dict[str, float]) -> list[str]:
    """The cells of a row."""
    names = "ours", "without", "ort", "paddle"
    shown = [f"{1e6 * found[name]:.1f}" if name in found else "not installed" for name in names]
    best = min((found[name] for name in ("ort", "paddle") if name in found), default=None)
    return [*shown, f"{found['ours'] / best:.2f}" if best else ""]
