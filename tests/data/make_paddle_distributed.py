"""Write what Paddle says of ranks, pipelines and mixed precision where no rank runs.

    python tests/data/make_paddle_distributed.py

needs an interpreter with `paddlepaddle` (the committed files come from 3.3.1, the CPU package); the
tests need none. The files:

topologies.json: `topologies`, one for each mesh: `names` and `dims` of
`fleet.CommunicateTopology(names, dims)`, its `world_size`, `coords` (the coordinate of each rank),
`comm_lists` (name -> get_comm_list), `axis_lists` (name -> get_axis_list for each index) and
`fused` ([names, get_fused_ranks], sorted: Paddle's order differs from run to run). Where the names
are those of hybrid parallel, `hybrid` has, for each rank, what the methods of
`HybridCommunicateGroup` return; a group is shown by its ranks. (Rank and world size are told to
Paddle's code, and no group is made.)

pipeline_segments.json: the bounds of parts, `uniform` by "layers,parts", `layer` by "class,parts"
of the layers of `row` (null: refused).
pipeline_schedules.json: `schedules`, name -> key -> stages, each the jobs of one stage in order.
The key is "stages,micro-batches" or "stages,micro-batches,chunks". F is a forward, B a backward,
I and W its halves (the gradient of the inputs, of the weights), the number its micro-batch, `F3.1`
that of chunk 1. Jobs that send, receive or optimise are left out. `refused` has what Paddle
refused, and why.

amp_lists.json: `white` and `black`, dtype -> level -> names, from `paddle.amp.amp_lists`.
"""

import itertools
import json
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

warnings.filterwarnings("ignore")

import paddle  # noqa: E402  (it warns on import)
from paddle.amp import amp_lists  # noqa: E402
from paddle.distributed import fleet  # noqa: E402
from paddle.distributed.fleet.meta_parallel import LayerDesc  # noqa: E402
from paddle.distributed.fleet.meta_parallel.parallel_layers.pp_layers import (  # noqa: E402
    SegmentLayers,
)
from paddle.distributed.passes import new_pass  # noqa: E402

HYBRID = ["data", "pipe", "sharding", "sep", "model"]
TOPOLOGIES = [
    *[(HYBRID, list(dims)) for dims in itertools.product([1, 2], repeat=5)],
    (HYBRID, [2, 3, 1, 1, 2]),
    (HYBRID, [3, 1, 2, 1, 4]),
    (HYBRID, [1, 4, 1, 1, 2]),
    (["pipe", "data", "sharding", "sep", "model"], [2, 2, 1, 1, 2]),
    (["model", "sep", "sharding", "pipe", "data"], [2, 1, 2, 2, 1]),
    (["data", "pipe", "sharding", "sep", "context", "model"], [2, 1, 1, 1, 2, 2]),
    (["data", "model"], [2, 4]),
    (["x", "y", "z"], [3, 2, 4]),
    (["x"], [5]),
]


def main() -> None:
    write("topologies.json", topologies=[topology(names, dims) for names, dims in TOPOLOGIES])
    schedules, refused = pipelines()
    write("pipeline_schedules.json", schedules=schedules, refused=refused)
    write("pipeline_segments.json", **segments())
    write(
        "amp_lists.json",
        **{
            key: {
                dtype: {level: sorted(names) for level, names in levels.items()}
                for dtype, levels in table.items()
            }
            for key, table in (("white", amp_lists.white_list()), ("black", amp_lists.black_list()))
        },
    )


def write(name: str, **content: object) -> None:
    """A new line after each inner list or table."""
    text = json.dumps({"paddle_version": paddle.__version__, **content}, separators=(",", ":"))
    text = re.sub(r'(?<=[\]}],)(?=["{])', "\n", text)
    assert json.loads(text)
    Path(__file__).with_name(name).write_text(text + "\n", encoding="utf-8")


# ---- ranks -----------------------------------------------------------------------------------


def topology(names: list[str], dims: list[int]) -> dict:
    found = fleet.CommunicateTopology(names, dims)
    pairs = [list(pair) for pair in itertools.combinations(names, 2)]
    ranks = range(found.world_size())
    assert all(found.get_rank(**found.get_coord(k)._asdict()) == k for k in ranks)
    result = {
        "names": names,
        "dims": dims,
        "world_size": found.world_size(),
        "coords": [list(found.get_coord(k)) for k in ranks],
        "comm_lists": {name: found.get_comm_list(name) for name in names},
        "axis_lists": {
            name: [found.get_axis_list(name, k) for k in range(found.get_dim(name))]
            for name in names
        },
        "fused": [[pair, sorted(found.get_fused_ranks(pair))] for pair in pairs],
    }
    if set(names) >= set(HYBRID):
        result["hybrid"] = shown(lambda: [hybrid(found, rank) for rank in ranks])
    return result


def hybrid(found, rank: int) -> dict:
    """What each method of the group without arguments returns on `rank`."""
    told = {
        "get_rank": lambda *_: rank,
        "get_world_size": lambda *_: found.world_size(),
        "new_group": lambda ranks, **_: SimpleNamespace(
            ranks=ranks, nranks=len(ranks), rank=ranks.index(rank) if rank in ranks else -1, id=0
        ),
        "all_reduce": lambda *_, **__: None,
    }
    real = {name: getattr(paddle.distributed, name) for name in told}
    for name, stand_in in told.items():
        setattr(paddle.distributed, name, stand_in)
    try:
        group = fleet.HybridCommunicateGroup(found)
        return {
            name: shown(getattr(group, name))
            for name in sorted(vars(type(group)))
            if re.match("get_|is_", name) and name != "get_rank_from_stage"
        }
    finally:
        for name, function in real.items():
            setattr(paddle.distributed, name, function)


def shown(method) -> object:
    try:
        return plain(method())
    except (AssertionError, AttributeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def plain(value) -> object:
    if isinstance(value, SimpleNamespace):
        return value.ranks
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value if isinstance(value, (int, str, type(None))) else type(value).__name__


# ---- pipelines -------------------------------------------------------------------------------

STAGES, MICRO_BATCHES = [2, 3, 4, 8], [1, 2, 3, 4, 5, 6, 8, 12, 16]
CHUNKS = {"FThenB": [1], "1F1B": [1], "Eager1F1B": [1], "ZBH1": [1], "VPP": [2, 3], "ZBVPP": [2]}


def pipelines() -> tuple[dict, dict]:
    schedules, refused = {}, {}
    for name, chunks in CHUNKS.items():
        for stages, count, parts in itertools.product(STAGES, MICRO_BATCHES, chunks):
            key = ",".join(map(str, [stages, count, parts][: 2 + (parts > 1)]))
            try:
                jobs = [stage_jobs(name, k, stages, count, parts) for k in range(stages)]
                schedules.setdefault(name, {})[key] = jobs
            except (AssertionError, AttributeError, ValueError) as error:
                refused.setdefault(name, {}).setdefault(str(error), []).append(key)
    return schedules, refused


ROW = ["Embedding", "Linear", "ReLU", "Linear", "ReLU", "Linear", "Linear", "LayerNorm", "Linear",
       "Linear", "Softmax"]  # fmt: skip
"""The classes of a row of layers, for cuts that count a class."""


def segments() -> dict:
    uniform, by_layer = {}, {}
    for count, parts in itertools.product([1, 2, 3, 4, 5, 7, 8, 12, 13], [1, *STAGES]):
        if parts <= count:
            layers = [LayerDesc(paddle.nn.ReLU)] * count
            uniform[f"{count},{parts}"] = SegmentLayers(layers, parts, "uniform").do_segment()
    layers = [LayerDesc(getattr(paddle.nn, name)) for name in ROW]
    for kind, parts in itertools.product(["Linear", "linear", "ReLU", "Norm"], [1, 2, 3, 4, 6]):
        try:
            found = SegmentLayers(layers, parts, f"layer:{kind}").do_segment()
        except AssertionError:
            found = None
        by_layer[f"{kind},{parts}"] = found
    return {"row": ROW, "uniform": uniform, "layer": by_layer}


def stage_jobs(name: str, stage: int, stages: int, micro_batches: int, chunks: int) -> str:
    options = {
        "num_micro_batches": micro_batches,
        "pp_stage": stage,
        "pp_degree": stages,
        "vpp_degree": chunks,
        "num_model_chunks": chunks,
        "enable_send_recv_overlap": False,
        "split_backward": name.startswith("ZB"),
        "program_runtimes": [1, 1, 1, 1, 1],
        "memory_limit_times": -1,
    }
    plan = new_pass(f"pipeline_scheduler_{name}", options)._create_job_list()
    jobs = [(job.type(), job.micro_batch_id()) for job in plan]
    return " ".join(short(kind, index) for kind, index in jobs if kind[:4] in ("forw", "back"))


def short(kind: str, index: int) -> str:
    word, part, chunk = re.fullmatch(r"(forward|backward)(_[bw])?(\d*)", kind).groups()
    letter = {"_b": "I", "_w": "W"}[part] if part else word[0].upper()
    return f"{letter}{index}" + (f".{chunk}" if chunk else "")


if __name__ == "__main__":
    main()
