"""Tokens a second of a GPT with a cache, beside PyTorch with one: `./run bench generation`.

A GPT of 4 blocks of 256 with a context of 256 reads 16 tokens and writes 128, always the likeliest,
one text and eight at once: MiniPaddle's `Decoder`, and PyTorch with a cache that it writes in place
and reads as far as it is filled, eagerly and with its step compiled. Weights and texts are equal.
Times are processor times: run it with one thread. Then drafts of a smaller model, and a scheduler
with more texts than slots, in tokens a second of all texts.

The second table has a GPT of GPT-2's small shape, 12 blocks of 768, beside llama.cpp with the same
weights: its 340 MB in float32 come from memory for each token. In 4 bits the matrices of its blocks
have scales for 64 numbers each, llama.cpp's Q4_0 for 32.
"""

from __future__ import annotations

import statistics
from functools import partial
from importlib.util import find_spec
from itertools import product
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import minipaddle as paddle
from minipaddle.generation import Decoder, Request, Sampler, Scheduler, write_with_draft
from tests.benchmarks.llama import Llama, write_gguf
from tests.benchmarks.quantized_times import with_small_weights

WORDS, WIDTH, LAYERS, HEADS, CONTEXT = 256, 256, 4, 4, 256
PROMPT, WRITTEN, ROUNDS = 16, 128, 5


def model(width=WIDTH, layers=LAYERS, heads=HEADS):
    paddle.seed(0)
    return paddle.text.GPT(WORDS, width, layers, heads, CONTEXT)


def prompts(n: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, WORDS, (n, PROMPT))


def ours(net, n: int):
    """What writes n texts with a decoder."""
    decoder, text = Decoder(net, slots=n, backend="native"), prompts(n)

    def write():
        scores, found = decoder.read_together(text, [0] * n)[:, -1], []
        for k in range(WRITTEN):
            found.append(scores.argmax(-1))
            if k + 1 < WRITTEN:
                scores = decoder.step(found[-1], [PROMPT + k] * n)
        return np.stack(found, 1)

    return write


def theirs(net, n: int, compiled: bool):
    """The same with PyTorch."""
    import torch
    from torch.nn import functional as F

    w = {name: torch.tensor(p.numpy()) for name, p in net.named_parameters()}
    caches = torch.zeros(LAYERS, 2, n, HEADS, CONTEXT, WIDTH // HEADS)
    text = torch.tensor(prompts(n))

    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)

    def linear(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def step(tokens, start: int):
        length = tokens.shape[1]
        end = start + length
        x = w["tokens.weight"][tokens] + w["places.weight"][start:end]
        for k in range(LAYERS):
            qkv = linear(norm(x, f"blocks.{k}.norm1"), f"blocks.{k}.attention.qkv")
            q, key, value = qkv.view(n, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            caches[k, 0, :, :, start:end], caches[k, 1, :, :, start:end] = key, value
            seen = caches[k, :, :, :, :end]
            y = F.scaled_dot_product_attention(q, *seen, is_causal=length > 1)
            x = x + linear(y.transpose(1, 2).flatten(2), f"blocks.{k}.attention.out")
            y = linear(norm(x, f"blocks.{k}.norm2"), f"blocks.{k}.mlp.0")
            x = x + linear(F.gelu(y), f"blocks.{k}.mlp.2")
        return norm(x, "norm")[:, -1] @ w["tokens.weight"].T

    if compiled:
        torch._dynamo.config.recompile_limit = 64  # the names of the weights are numbers to it
        step = torch.compile(step, dynamic=True)

    @torch.inference_mode()
    def write():
        scores, found = step(text, 0), []
        for k in range(WRITTEN):
            found.append(scores.argmax(-1))
            if k + 1 < WRITTEN:
                scores = step(found[-1][:, None], PROMPT + k)
        return torch.stack(found, 1).numpy()

    return write


def with_drafts(net):
    """A text of the same model whose drafts a small one writes: random weights agree by luck only,
    so the draft model is the model itself with one block of four.
    """
    small = model(layers=1)
    own = net.state_dict()
    small.set_state_dict({name: own[name] for name in small.state_dict()})
    pair = Decoder(net, backend="native"), Decoder(small, backend="native")
    prompt = prompts(1)[0].tolist()
    return lambda: len(write_with_draft(*pair, prompt, WRITTEN, Sampler(0)))


def many(net, slots: int, texts: int):
    """What writes texts of 16 to 128 tokens through a scheduler, and returns their lengths."""
    lengths = np.random.default_rng(1).integers(16, WRITTEN + 1, texts)
    decoder = Decoder(net, slots, backend="native")

    def write():
        scheduler = Scheduler(decoder)
        for prompt, n in zip(prompts(texts).tolist(), lengths.tolist()):
            scheduler.submit(Request(prompt, n, Sampler(0)))
        while scheduler.busy:
            scheduler.step()
        return lengths

    return write


def measure(candidates: dict) -> dict[str, float]:
    """Median seconds of processor time of each, in turn."""
    times = {name: [] for name in candidates}
    for name in track([*candidates] * ROUNDS, transient=True):
        began = process_time()
        candidates[name]()
        times[name].append(process_time() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def beside_llama(threads: int) -> Table:
    """Tokens a second of llama.cpp and of ours, in float32 and in 4 bits."""
    net, bits = model(768, 12, 12).eval(), {"float32": "F32", "4 bits": "Q4_0"}
    for block in net.blocks:
        block.mlp[1] = paddle.nn.GELU(approximate=True)
    nets = {"float32": net, "4 bits": with_small_weights(net, "int4", 64)}
    table = Table(title=f"GPT-2 small: tokens a second, {threads} thread(s)")
    for column in ("", "MiniPaddle", "llama.cpp", "ours / llama.cpp"):
        table.add_column(column, justify="right" if column else "left")
    with TemporaryDirectory() as folder:
        for n, (name, kind) in product((1, 8), bits.items()):
            path = f"{folder}/{kind}.gguf"
            write_gguf(net, path, kind)
            peer, text = Llama(path, n, CONTEXT, threads), prompts(n)
            if kind == "F32":  # it keeps keys and values in float16
                own = net(paddle.to_tensor(text))[:, -1].numpy()
                np.testing.assert_allclose(peer.scores(text, 0), own, atol=5e-3 * own.std())
            ways = {"ours": ours(nets[name], n), "llama": partial(peer.write, text, WRITTEN)}
            for write in ways.values():
                write()
            ours_, theirs_ = (n * WRITTEN / t for t in measure(ways).values())
            title = f"{n} text{'s' * (n > 1)}, {name}"
            table.add_row(title, f"{ours_:,.1f}", f"{theirs_:,.1f}", f"{ours_ / theirs_:.2f}")
            peer.close()
    return table


def run(threads: int, arguments=()) -> None:
    import torch

    torch.set_num_threads(threads)
    net = model()
    table = Table(title=f"tokens a second, {threads} thread(s)")
    for column in ("", "MiniPaddle", "torch", "ours / torch", "torch.compile", "ours / compiled"):
        table.add_column(column, justify="right" if column else "left")
    for n in (1, 8):
        ways = {
            "ours": ours(net, n),
            "torch": theirs(net, n, False),
            "compiled": theirs(net, n, True),
        }
        texts = {name: write() for name, write in ways.items()}
        for text in texts.values():
            np.testing.assert_array_equal(text, texts["ours"])
        speed = {name: n * WRITTEN / t for name, t in measure(ways).items()}
        table.add_row(
            f"{n} text{'s' * (n > 1)}", f"{speed['ours']:,.0f}",
            f"{speed['torch']:,.0f}", f"{speed['ours'] / speed['torch']:.2f}",
            f"{speed['compiled']:,.0f}", f"{speed['ours'] / speed['compiled']:.2f}",
        )  # fmt: skip
    others = {"1 text with drafts": with_drafts(net), "32 texts in 8 slots": many(net, 8, 32)}
    counts = {
        name: np.sum(write()) if "slots" in name else WRITTEN for name, write in others.items()
    }
    for name, seconds in measure(others).items():
        table.add_row(name, f"{counts[name] / seconds:,.0f}")
    Console(width=110).print(table)
    if not (find_spec("llama_cpp") and find_spec("gguf")):
        print("llama.cpp is left out: pip install llama-cpp-python gguf (compiles for minutes)")
    else:
        Console(width=110).print(beside_llama(threads))
