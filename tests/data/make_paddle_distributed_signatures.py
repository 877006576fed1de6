"""Write `distributed_signatures.json` and `dist_behaviours.json`: the face of Paddle's shardings.

    python tests/data/make_paddle_distributed_signatures.py

needs an interpreter with `paddlepaddle` (the committed files come from 3.3.1, the CPU package);
the tests need none. The signatures have the form of `paddle_signatures.json`: `signatures`,
`attributes` and `unreadable` of the names below and of the methods of the classes among them, and
`about`, the first words of each docstring. `behaviours` are [expression, outcome] in one process,
as rank 0: what `repr` shows, the error's type with the first line of its message, or "the process
dies". The names that expressions use are in `outcome`; `line` is a mesh of 2 ranks, `plane` one of
2 x 2. Where a constructor is written in C++, `about` shows it under the name of its `__init__`.
"""

import inspect
import json
import os
import re
from pathlib import Path

import make_paddle_signatures as one_name
import paddle
import paddle.distributed as dist

FOLDER = Path(__file__).parent
NAMES = """
    distributed.ProcessMesh distributed.Placement distributed.Shard distributed.Replicate
    distributed.Partial distributed.ReduceType distributed.DistAttr distributed.shard_tensor
    distributed.dtensor_from_fn distributed.reshard distributed.unshard_dtensor
    distributed.shard_layer distributed.shard_optimizer distributed.shard_scaler
    distributed.shard_dataloader distributed.ShardDataloader distributed.ShardingStage1
    distributed.ShardingStage2 distributed.ShardingStage3 distributed.Strategy
    distributed.to_static distributed.DistModel distributed.get_mesh distributed.set_mesh
    distributed.auto_parallel.api.dtensor_from_local distributed.auto_parallel.api.dtensor_to_local
    distributed.auto_parallel.create_mesh
    distributed.parallelize distributed.ColWiseParallel distributed.RowWiseParallel
    distributed.SequenceParallelBegin distributed.SequenceParallelEnd
    distributed.SequenceParallelEnable distributed.SequenceParallelDisable
    distributed.PrepareLayerInput distributed.PrepareLayerOutput distributed.SplitPoint
    distributed.LocalLayer distributed.to_distributed distributed.split
    distributed.save_state_dict distributed.load_state_dict
    distributed.sharding.group_sharded_parallel distributed.sharding.save_group_sharded_model
    distributed.fleet.CommunicateTopology distributed.fleet.HybridCommunicateGroup
    distributed.fleet.DistributedStrategy distributed.fleet.get_hybrid_communicate_group
    distributed.fleet.distributed_model distributed.fleet.distributed_optimizer
    distributed.fleet.distributed_scaler
    distributed.fleet.recompute.recompute distributed.fleet.recompute.recompute_sequential
    distributed.fleet.recompute.recompute_hybrid distributed.fleet.utils.recompute
    distributed.fleet.meta_parallel.ColumnParallelLinear
    distributed.fleet.meta_parallel.RowParallelLinear
    distributed.fleet.meta_parallel.VocabParallelEmbedding
    distributed.fleet.meta_parallel.ParallelCrossEntropy
    distributed.fleet.meta_parallel.get_rng_state_tracker
    distributed.fleet.meta_parallel.model_parallel_random_seed
    distributed.fleet.meta_parallel.RNGStatesTracker
    distributed.fleet.meta_parallel.TensorParallel distributed.fleet.meta_parallel.LayerDesc
    distributed.fleet.meta_parallel.SharedLayerDesc distributed.fleet.meta_parallel.PipelineLayer
    distributed.fleet.meta_parallel.PipelineParallel
    distributed.fleet.meta_parallel.parallel_layers.pp_layers.SegmentLayers
"""
SEQUENCE = "distributed.fleet.utils.sequence_parallel_utils"

# Rank 0 can ask a mesh of others anything that needs no answer of theirs: where an outcome is that
# the environment lacks endpoints, Paddle wants to move something.
BEHAVIOURS = """
repr(ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])).split(" at ")[0]
str(ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])).split(" at ")[0]
repr(dist.shard_tensor(paddle.ones([2]), ProcessMesh([0], dim_names=["x"]), [Shard(0)]))
ProcessMesh([0, 1]).dim_names
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"]).shape
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"]).process_ids
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"]).ndim
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"]).mesh
ProcessMesh(shape=[2, 2], process_ids=[0, 1, 2, 3]).mesh
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"]).get_dim_size("x")
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"]).get_dim_size("z")
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"]).get_rank_by_dim_and_process_id("x", 2)
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"]).get_mesh_with_dim("y").mesh
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"]).get_mesh_with_dim("y", 0).mesh
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"]).get_submesh_with_dim("x").mesh
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])[0].mesh
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])[:, 0].mesh
ProcessMesh([0, 1]) == ProcessMesh([0, 1])
ProcessMesh([0, 1]) == ProcessMesh([1, 0])
ProcessMesh([0, 1], dim_names=["x"]) == ProcessMesh([0, 1], dim_names=["y"])
ProcessMesh([0, 1], dim_names=["x", "y"])
ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "x"])
ProcessMesh([0, 1], dim_names="x")
ProcessMesh([0, 0])
ProcessMesh([0.5, 1.5])
ProcessMesh([-1, 0])
ProcessMesh([[0, 1], [2]])
ProcessMesh(3)
ProcessMesh("ab")
ProcessMesh()
ProcessMesh([])
ProcessMesh(shape=[2, 2], process_ids=[0, 1, 2])
Shard(0)
Shard(-1)
Shard(1.5)
Shard("x")
Shard(0, shard_order=1)
Shard(0).get_dim()
Shard(0).is_shard(), Shard(0).is_shard(0), Shard(0).is_shard(1), Shard(0).is_replicated()
Shard(0) == Shard(0), Shard(0) == Shard(1), Shard(0) == Replicate()
hash(Shard(0)) == hash(Shard(0))
Replicate(), Replicate().is_replicated()
Partial(), Partial(dist.ReduceType.kRedMax), Partial(dist.ReduceType.kRedAvg)
Partial().reduce_type(), Partial().is_partial()
Partial("sum")
sorted(x for x in dir(dist.ReduceType) if x.startswith("k"))
put([4, 6], [Shard(2)])
put([4, 6], [Shard(-1)]).placements
put([4, 6], [Shard(-3)])
put([4, 6], [])
put([4, 6], [Shard(0), Replicate()])
put([4, 6], [Shard(0), Shard(0)], plane)
put([4, 6], [Shard(0), Shard(0)], plane)._local_shape
put([4, 6], Shard(0))
put([4, 6], ["x"])
put([4, 6], None)
dist.shard_tensor(paddle.ones([2]), None, [Shard(0)])
dist.shard_tensor(paddle.ones([2]), [0, 1], [Shard(0)])
dist.shard_tensor([[1.0, 2.0]], line, [Replicate()]).dtype
dist.shard_tensor(paddle.ones([2]), line, [Replicate()], dtype="int64").dtype
dist.shard_tensor(put([4, 6], [Shard(0)]), line, [Replicate()])
dist.shard_tensor(put([4, 6], [Shard(0)]), line, [Shard(0)]).placements
dist.shard_tensor(paddle.ones([2]), line, [Replicate()], stop_gradient=False).stop_gradient
put([4, 6], [Shard(0)]).stop_gradient
put([4, 6], [Shard(0)]).shape
put([4, 6], [Shard(0)])._local_shape
put([13, 6], [Shard(0)])._local_shape
put([1, 6], [Shard(0)])._local_shape
put([4, 6], [Shard(0)]).is_dist(), paddle.ones([1]).is_dist()
put([4, 6], [Shard(0)]).process_mesh == line
type(put([4, 6], [Shard(0)])).__name__
put([4, 6], [Shard(0)]).num_shard
type(put([4, 6], [Shard(0)]).placements).__name__
paddle.ones([2]).placements
paddle.ones([2]).process_mesh
paddle.ones([2])._local_value()
paddle.ones([2])._local_shape
type(dist.shard_tensor(paddle.create_parameter([2, 2], "float32"), line, [Shard(0)])).__name__
dist.reshard(paddle.ones([2]), line, [Shard(0)])
dist.reshard(put([4, 6], [Replicate()]), line, [Shard(0)]).placements
dist.reshard(put([4, 6], [Replicate()]), line, [Shard(2)])
dist.reshard(put([4, 6], [Replicate()]), line, [Shard(0), Shard(1)])
dist.unshard_dtensor(paddle.ones([2]))
dist.unshard_dtensor(put([4, 6], [Replicate()])).is_dist()
(put([4, 6], [Shard(0)]) + paddle.ones([4, 6])).placements
(paddle.ones([4, 6]) + put([4, 6], [Shard(0)])).placements
(put([4, 6], [Shard(0)]) + put([4, 6], [Shard(0), Replicate()], plane))
[f(put([4, 6], [Shard(0)]), axis=0).placements for f in (paddle.sum, paddle.mean, paddle.max, paddle.min)]
[f(put([4, 6], [Shard(0)]) > 0, axis=0).placements for f in (paddle.all, paddle.any)]
paddle.logsumexp(put([4, 6], [Shard(0)]), axis=0).placements
paddle.norm(put([4, 6], [Shard(0)])).placements
paddle.prod(put([4, 6], [Shard(0)]), axis=0).placements
paddle.expand(put([4, 6], [Shard(0)]), [2, 4, 6]).placements
paddle.cast(put([4, 6], [Shard(0)]), "int32").placements
paddle.argmax(put([4, 6], [Shard(0)]), axis=1).placements
F.dropout(put([4, 6], [Shard(0)]), 0.5).placements
F.gelu(put([4, 6], [Shard(0)])).placements
F.gelu(put([13, 6], [Shard(0)])).placements
F.conv2d(put([2, 3, 8, 8], [Shard(0)]), put([4, 3, 3, 3], [Replicate()]))._local_shape
F.conv2d(put([2, 3, 8, 8], [Shard(2)]), put([4, 3, 3, 3], [Replicate()]))._local_shape
F.max_pool2d(put([2, 3, 8, 8], [Shard(0)]), 2).placements
paddle.matmul(put([4, 6], [Shard(0), Shard(1)], plane), put([6, 8], [Replicate(), Shard(0)], plane)).placements
dist.shard_layer(paddle.nn.Linear(4, 6), line).weight.placements
dist.shard_layer(paddle.nn.Linear(4, 6), None)
dist.shard_layer(3, line)
dist.ShardingStage1("z", line)
dist.shard_optimizer(3)
dist.get_mesh()
dist.dtensor_from_fn(paddle.ones, line, [Shard(0)], [4, 2])._local_shape
dist.DistAttr(line, ["x", None]).dims_mapping
dist.DistAttr(line, ["z", None])
fleet.CommunicateTopology(["data", "model"], [2, 2]).get_coord(1)
fleet.CommunicateTopology(["data", "model"], [2, 2]).get_coord(4)
fleet.CommunicateTopology(["data", "model"], [2, 2]).get_comm_list("pipe")
fleet.CommunicateTopology(["data", "model"], [2]).world_size()
fleet.CommunicateTopology(["data", "model"], [2, 2]).get_rank(data=0)
fleet.CommunicateTopology(["data", "model"], [2, 2]).get_rank_from_stage(0, model=1)
fleet.meta_parallel.get_rng_state_tracker()
tracker.add("a", 1)
[tracker.add("a", 1), tracker.add("a", 2)]
[tracker.add("a", 1), tracker.add("b", 1)]
tracker.rng_state("nobody").__enter__()
fleet.meta_parallel.ColumnParallelLinear(4, 6)
dist.sharding.group_sharded_parallel(paddle.nn.Linear(2, 2), paddle.optimizer.SGD(), "p")
"""  # noqa: E501


def main() -> None:
    content = {"paddle_version": paddle.__version__, **signatures()}
    write("distributed_signatures.json", one_name.to_json(content))
    outcomes = [[line, apart(line)] for line in BEHAVIOURS.strip().splitlines()]
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in outcomes)
    head = json.dumps({"paddle_version": paddle.__version__})[:-1]
    write("dist_behaviours.json", f'{head}, "behaviours": [\n{rows}\n]}}\n')


def write(name: str, text: str) -> None:
    assert json.loads(text)
    (FOLDER / name).write_text(text, encoding="utf-8")


def signatures() -> dict:
    paddle.distributed.fleet.utils.sequence_parallel_utils = sequence = (
        one_name.importlib.import_module(f"paddle.{SEQUENCE}")
    )
    more = [f"{SEQUENCE}.{name}" for name, value in vars(sequence).items() if own(value, sequence)]
    found, attributes, unreadable, about = {}, [], [], {}
    for name in [f"paddle.{name}" for name in [*NAMES.split(), *more]]:
        if not one_name.exists(name):
            unreadable.append(name)
            continue
        for each, value in [(name, one_name.resolve(name)), *methods(name)]:
            parameters = find(each, value) if callable(value) else None
            if not callable(value):
                attributes.append(each)
            elif parameters is None:
                unreadable.append(each)
            else:
                found[each] = [one_name.describe(parameter) for parameter in parameters]
            if callable(value) and (text := first_words(value)):
                about[each] = text
            if inspect.isclass(value) and parameters is None:
                about[f"{each}.__init__"] = first_words(value.__init__, None)
    return {
        "signatures": found,
        "attributes": attributes,
        "unreadable": unreadable,
        "about": about,
    }


def first_words(value: object, end: str | None = "\n\n") -> str:
    text = (value.__doc__ or "").strip()
    return " ".join(text.split(end)[0].split() if end else text.split())[:300]


def own(value: object, module) -> bool:
    """Is it a function or class that `module` defines?"""
    return getattr(value, "__module__", "") == module.__name__ and callable(value)


def methods(name: str) -> list[tuple[str, object]]:
    owner = one_name.resolve(name)
    if not inspect.isclass(owner) or "DistributedStrategy" in name:
        return []
    inherited = {*dir(paddle.nn.Layer), *dir(object), *dir(paddle.optimizer.Optimizer)}
    return [
        (f"{name}.{key}", getattr(owner, key))
        for key in dir(owner)
        if not key.startswith("_") and key not in inherited
    ]


def find(name: str, value: object):
    parameters = one_name.find_parameters(name, value)
    if inspect.isclass(value) or not parameters or parameters[0].name not in ("self", "cls"):
        return parameters
    return parameters[1:]


def apart(expression: str) -> str:
    """The outcome in a process of its own: some errors of Paddle's end the process."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, outcome(expression).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    return text if os.waitpid(child, 0)[1] == 0 else "the process dies"


def outcome(expression: str) -> str:
    line = dist.ProcessMesh([0, 1], dim_names=["x"])
    plane = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])

    def put(shape, placements, mesh=line):
        return dist.shard_tensor(paddle.ones(shape), mesh, placements)

    names = {
        "paddle": paddle,
        "dist": dist,
        "fleet": dist.fleet,
        "line": line,
        "plane": plane,
        "F": paddle.nn.functional,
        "put": put,
        "tracker": dist.fleet.meta_parallel.get_rng_state_tracker(),
        **{
            name: getattr(dist, name)
            for name in ("ProcessMesh", "Shard", "Replicate", "Partial", "reshard")
        },
    }
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", repr(eval(expression, names)))
    except Exception as error:
        told = [x for x in str(error).strip().splitlines() if x.strip()] or [""]
        shown = next((x for x in told if x.startswith("(")), told[0])
        return f"{type(error).__name__}: {re.sub(r' ?.at /paddle.*', '', shown)}"


if __name__ == "__main__":
    main()
