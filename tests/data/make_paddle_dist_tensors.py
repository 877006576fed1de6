"""Write `dist_tensors.json`: what Paddle's tensors in pieces hold on each of 2, 3 and 4 ranks.

    python tests/data/make_paddle_dist_tensors.py

needs an interpreter with `paddlepaddle` (the committed file comes from 3.3.1, the CPU package; the
ranks are processes of one machine, joined by gloo); the tests need none. A case has
    mesh      the shape of the mesh; its axes are called x and y
    program   Python over `paddle`, `dist`, `mesh`, `F` (nn.functional), `Shard`, `Replicate`,
              `Partial`, `count(*shape)` (the numbers 0, 1, 2, ... as float32 of that shape) and
              `put(x, *placements)` (`dist.shard_tensor(x, mesh, placements)`)
    found     what each rank saw: name -> [global shape, placements, local shape, local values], for
              each variable of the program that is a tensor in pieces, `x.grad` among them; a plain
              tensor is [shape, null, null, values]
or, instead of `found`, `raised`: the first line of the error on each rank, or "no answer" where a
rank was still waiting after a while.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET = Path(__file__).with_name("dist_tensors.json")
WAIT = 40
"""Seconds without news after which a case has hung."""
PLACEMENTS = ["Shard(0)", "Shard(1)", "Replicate()", "Partial()"]

MOVES = [
    f"a = put(count(6, 4), {old}); b = dist.reshard(a, mesh, [{new}])"
    for old in PLACEMENTS
    for new in PLACEMENTS
]
UNEVEN = [
    f"a = put(count(13, 2), {old}); b = dist.reshard(a, mesh, [{new}])"
    for old, new in [
        ("Shard(0)", "Replicate()"),
        ("Replicate()", "Shard(0)"),
        ("Partial()", "Shard(0)"),
        ("Shard(0)", "Shard(1)"),
        ("Shard(1)", "Shard(0)"),
    ]
]
OPERATORS = """
a = put(count(1, 4), Shard(0))
a = put(count(0, 4), Shard(0))
a = put(count(4), Shard(0)); b = dist.unshard_dtensor(a)
a = dist.auto_parallel.api.dtensor_from_local(count(2, 3), mesh, [Shard(0)])
a = dist.auto_parallel.api.dtensor_from_local(count(2, 3), mesh, [Partial()]); b = dist.reshard(a, mesh, [Replicate()])
a = dist.auto_parallel.api.dtensor_from_local(count(2), mesh, [Partial(dist.ReduceType.kRedMax)]); b = dist.reshard(a, mesh, [Replicate()])
a = dist.auto_parallel.api.dtensor_from_local(count(2) + 1, mesh, [Partial(dist.ReduceType.kRedAvg)]); b = dist.reshard(a, mesh, [Replicate()])
a = dist.auto_parallel.api.dtensor_to_local(put(count(4, 2), Shard(0)), mesh, [Shard(0)])
a = dist.dtensor_from_fn(paddle.ones, mesh, [Shard(0)], [4, 2])
a = paddle.matmul(put(count(4, 6), Shard(0)), put(count(6, 2), Replicate()))
a = paddle.matmul(put(count(4, 6), Replicate()), put(count(6, 2), Shard(1)))
a = paddle.matmul(put(count(4, 6), Shard(1)), put(count(6, 2), Shard(0)))
a = paddle.matmul(put(count(4, 6), Shard(1)), put(count(6, 2), Replicate()))
a = paddle.matmul(put(count(4, 6), Shard(0)), put(count(6, 2), Shard(1)))
a = paddle.matmul(put(count(4, 6), Shard(0)), put(count(6, 2), Shard(0)))
a = paddle.matmul(put(count(13, 6), Shard(0)), put(count(6, 2), Replicate()))
a = put(count(4, 2), Shard(0)) + put(count(4, 2), Shard(0))
a = put(count(4, 2), Shard(0)) + put(count(4, 2), Replicate())
a = put(count(4, 2), Shard(0)) + put(count(4, 2), Shard(1))
a = put(count(4, 2), Shard(0)) + count(4, 2)
a = put(count(4, 2), Shard(0)) + 1.0
a = put(count(4, 2), Partial()) + put(count(4, 2), Partial())
a = put(count(4, 2), Partial()) + put(count(4, 2), Replicate())
a = put(count(4, 2), Partial()) * 2.0
a = put(count(4, 2), Partial()) * put(count(4, 2), Replicate())
a = F.relu(put(count(4, 2), Partial()))
a = -put(count(4, 2), Partial())
a = F.relu(put(count(13, 2), Shard(0)))
a = paddle.exp(put(count(4, 2), Shard(1)))
a = paddle.sum(put(count(4, 2), Shard(0)))
a = paddle.sum(put(count(4, 2), Shard(0)), axis=0)
a = paddle.sum(put(count(4, 2), Shard(0)), axis=1)
a = paddle.sum(put(count(4, 2), Partial()), axis=1)
a = paddle.mean(put(count(4, 2), Shard(0)))
a = paddle.mean(put(count(13, 2), Shard(0)))
a = paddle.mean(put(count(4, 2), Partial()))
a = paddle.max(put(count(4, 2), Shard(0)), axis=0)
a = paddle.transpose(put(count(4, 2), Shard(0)), [1, 0])
a = paddle.reshape(put(count(4, 6), Shard(0)), [24])
a = paddle.reshape(put(count(4, 6), Shard(1)), [24])
a = paddle.reshape(put(count(4, 6), Shard(1)), [4, 2, 3])
a = paddle.concat([put(count(4, 2), Shard(0)), put(count(4, 2), Shard(0))], axis=1)
a = paddle.concat([put(count(4, 2), Shard(0)), put(count(4, 2), Shard(0))], axis=0)
a = put(count(4, 2), Shard(0))[1:3]
a = put(count(4, 2), Shard(0))[:, 1]
a = F.softmax(put(count(4, 2), Shard(0)))
a = F.softmax(put(count(4, 2), Shard(1)))
a = F.layer_norm(put(count(4, 2), Shard(0)), 2)
a = F.embedding(put(paddle.to_tensor([0, 3, 1, 2]), Replicate()), put(count(4, 2), Shard(0)))
a = F.embedding(put(paddle.to_tensor([0, 3, 1, 2]), Shard(0)), put(count(4, 2), Replicate()))
x = put(count(4, 6), Shard(0)); x.stop_gradient = False; w = put(count(6, 2), Replicate()); w.stop_gradient = False; paddle.matmul(x, w).sum().backward()
x = put(count(4, 6), Replicate()); x.stop_gradient = False; w = put(count(6, 2), Shard(1)); w.stop_gradient = False; paddle.matmul(x, w).sum().backward()
x = put(count(4, 6), Shard(1)); x.stop_gradient = False; w = put(count(6, 2), Shard(0)); w.stop_gradient = False; paddle.matmul(x, w).sum().backward()
x = put(count(4, 6), Shard(0)); x.stop_gradient = False; b = put(count(6), Replicate()); b.stop_gradient = False; (x + b).mean().backward()
x = put(count(4, 6), Shard(0)); x.stop_gradient = False; y = dist.reshard(x, mesh, [Replicate()]); (y * y).sum().backward()
x = put(count(4, 6), Replicate()); x.stop_gradient = False; y = dist.reshard(x, mesh, [Shard(0)]); (y * y).sum().backward()
x = put(count(4, 6), Partial()); x.stop_gradient = False; y = dist.reshard(x, mesh, [Replicate()]); (y * y).sum().backward()
a = paddle.nn.Linear(4, 2, weight_attr=paddle.nn.initializer.Constant(1.0)); b = dist.shard_layer(a, mesh, lambda name, layer, mesh: [setattr(layer, k, dist.shard_tensor(p, mesh, [Shard(0)])) for k, p in layer.named_parameters(include_sublayers=False)]); c = b.weight; d = b.bias
"""  # noqa: E501
PLANES = """
a = put(count(4, 6), Shard(0), Shard(1))
a = put(count(4, 6), Shard(0), Shard(0))
a = put(count(6, 2), Shard(0), Shard(0)); b = dist.reshard(a, mesh, [Replicate(), Replicate()])
a = put(count(4, 6), Shard(0), Shard(1)); b = dist.reshard(a, mesh, [Shard(1), Shard(0)])
a = put(count(4, 6), Shard(0), Replicate()); b = dist.reshard(a, mesh, [Replicate(), Shard(0)])
a = put(count(4, 6), Shard(0), Shard(1)); b = dist.reshard(a, mesh, [Replicate(), Replicate()])
a = put(count(4, 6), Partial(), Shard(1)); b = dist.reshard(a, mesh, [Shard(0), Shard(1)])
a = put(count(4, 6), Partial(), Partial()); b = dist.reshard(a, mesh, [Replicate(), Shard(0)])
a = paddle.matmul(put(count(4, 6), Shard(0), Shard(1)), put(count(6, 2), Replicate(), Shard(0)))
a = paddle.matmul(put(count(4, 6), Shard(0), Replicate()), put(count(6, 2), Replicate(), Shard(1)))
a = paddle.mean(put(count(4, 6), Shard(0), Shard(1)))
x = put(count(4, 6), Shard(0), Replicate()); x.stop_gradient = False; w = put(count(6, 2), Replicate(), Shard(1)); w.stop_gradient = False; paddle.matmul(x, w).sum().backward()
"""  # noqa: E501


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


CASES = [
    *[([2], program) for program in [*MOVES, *UNEVEN, *lines(OPERATORS)]],
    *[([3], program) for program in [*MOVES[:4], *UNEVEN, *lines(OPERATORS)[9:13]]],
    *[([2, 2], program) for program in lines(PLANES)],
]


def main() -> None:
    found = {}
    for mesh in ([2], [3], [2, 2]):
        waiting = [k for k, (shape, _) in enumerate(CASES) if shape == mesh]
        while waiting:
            answers = run(mesh, waiting)
            found |= answers
            waiting = [k for k in waiting if k not in answers]
    rows = [
        json.dumps({"mesh": mesh, "program": program, **found[k]}, separators=(",", ":"))
        for k, (mesh, program) in enumerate(CASES)
    ]
    text = ",\n".join(rows)
    TARGET.write_text(f'{{"paddle_version":"3.3.1","cases":[\n{text}\n]}}\n', encoding="utf-8")
    print(len(rows), "cases,", sum("raised" in found[k] for k in found), "raised")


def run(mesh: list[int], cases: list[int]) -> dict[int, dict]:
    """The answers of a world of ranks to `cases`, up to the first that fails on any rank."""
    count = mesh[0] * (mesh[1] if mesh[1:] else 1)
    ports = [free_port() for _ in range(count)]
    ends = ",".join(f"127.0.0.1:{port}" for port in ports)
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(count):
            told = {
                "PADDLE_TRAINER_ID": str(rank),
                "PADDLE_TRAINERS_NUM": str(count),
                "PADDLE_TRAINER_ENDPOINTS": ends,
                "PADDLE_CURRENT_ENDPOINT": ends.split(",")[rank],
                "PADDLE_MASTER": ends.split(",")[0],
                "PADDLE_DISTRI_BACKEND": "gloo",
                "OMP_NUM_THREADS": "1",
            }
            command = [sys.executable, __file__, folder, json.dumps(mesh), json.dumps(cases)]
            with open(f"{folder}/{rank}.log", "w") as log:
                ranks.append(
                    subprocess.Popen(command, env=os.environ | told, stdout=log, stderr=log)
                )
        seen, last = 0, time.monotonic()
        while any(rank.poll() is None for rank in ranks) and time.monotonic() < last + WAIT:
            time.sleep(0.1)
            if any(rank.poll() for rank in ranks):  # one has died: the others will wait for it
                time.sleep(3)
                break
            written = sum(len(answers_of(folder, rank)) for rank in range(count))
            if written > seen:
                seen, last = written, time.monotonic()
        for rank in ranks:
            rank.kill()
            rank.wait()
        told = [answers_of(folder, rank) for rank in range(count)]
    result = {}
    for place, case in enumerate(cases):
        answers = [rank[place] if place < len(rank) else "no answer" for rank in told]
        if any(isinstance(answer, str) for answer in answers):
            shown = [answer if isinstance(answer, str) else "an answer" for answer in answers]
            result[case] = {"raised": shown}
            break
        result[case] = {"found": answers}
    return result


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def answers_of(folder: str, rank: int) -> list:
    path = Path(folder, f"{rank}.answers")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# ---- on a rank -------------------------------------------------------------------------------


def work(folder: str, mesh: list[int], cases: list[int]) -> None:
    import paddle
    import paddle.distributed as dist

    dist.init_parallel_env()
    paddle.set_device("cpu")
    count = mesh[0] * (mesh[1] if mesh[1:] else 1)
    numbers = [[0, 1], [2, 3]] if mesh[1:] else list(range(count))
    grid = dist.ProcessMesh(numbers, dim_names=["x", "y"][: len(mesh)])
    with open(f"{folder}/{dist.get_rank()}.answers", "w", buffering=1) as answers:
        for case in cases:
            found = answer(paddle, dist, grid, CASES[case][1])
            answers.write(json.dumps(found) + "\n")
            if isinstance(found, str):
                break


def answer(paddle, dist, mesh, program: str) -> object:
    def numbers(*shape):
        size = 1
        for length in shape:
            size *= length
        return paddle.arange(size, dtype="float32").reshape(shape)

    names = {
        "paddle": paddle,
        "dist": dist,
        "mesh": mesh,
        "F": paddle.nn.functional,
        "count": numbers,
        "put": lambda x, *placements: dist.shard_tensor(x, mesh, placements),
        **{name: getattr(dist, name) for name in ("Shard", "Replicate", "Partial")},
    }
    given = set(names)
    try:
        exec(program, names)
        return {
            name: held
            for key in names
            if key not in given and isinstance(names[key], paddle.Tensor)
            for name, held in shown(key, names[key])
        }
    except Exception as error:
        message = str(error).strip().splitlines() or [""]
        told = [x for x in message if x.strip() and not x.startswith(("---", "C++", " "))]
        return f"{type(error).__name__}: {re.sub(r' ?.at /paddle.*', '', (told or message)[0])}"


def shown(name: str, tensor) -> list:
    """(name, [shape, placements, local shape, local values]) of a tensor, and of its gradient."""
    if tensor.is_dist():
        local = tensor._local_value()
        words = [re.sub(r"(dim|reduce_type)=", "", str(each)) for each in tensor.placements]
        held = [tensor.shape, words, local.shape, rounded(local)]
    else:
        held = [tensor.shape, None, None, rounded(tensor)]
    rest = shown(f"{name}.grad", tensor.grad) if tensor.grad is not None else []
    return [(name, held), *rest]


def rounded(tensor) -> list:
    return [float(f"{x:.6g}") for x in tensor.numpy().ravel().tolist()]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]))
    else:
        main()
