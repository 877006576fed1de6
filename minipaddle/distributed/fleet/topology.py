"""Ranks in a grid with named axes, in Paddle's order, and the groups along the axes."""

from collections import namedtuple
from itertools import product
from math import prod

from ...engine.core.errors import not_supported, runtime_error, value_error
from ...engine.core.rank import per_rank
from ...engine.sharding.placements import ProcessMesh
from ..parallel import get_rank, get_world_size, new_group

AXES = {"data": "dp", "pipe": "pp", "sharding": "sharding", "sep": "sep", "model": "mp"}
"""The mesh dimension of each of Paddle's kinds of parallelism."""


class ParallelMode:
    """Paddle's numbers of the kinds of parallelism.

    >>> import minipaddle.distributed as dist
    >>> dist.ParallelMode.TENSOR_PARALLEL
    1
    """

    DATA_PARALLEL, TENSOR_PARALLEL, PIPELINE_PARALLEL = 0, 1, 2
    SHARDING_PARALLEL, SEGMENT_PARALLEL = 3, 4


MODES = {
    "pipe": ParallelMode.PIPELINE_PARALLEL,
    "model": ParallelMode.TENSOR_PARALLEL,
    "sep": ParallelMode.SEGMENT_PARALLEL,
    "sharding": ParallelMode.SHARDING_PARALLEL,
    "data": ParallelMode.DATA_PARALLEL,
}
"""The kinds of parallelism, the first match first."""

current = per_rank(None)
"""The `HybridCommunicateGroup` of `fleet.init`."""


class CommunicateTopology:
    """Ranks numbered row by row in a grid of size `dims`: the last axis varies fastest.


    >>> from minipaddle.distributed import fleet
    >>> grid = fleet.CommunicateTopology(["data", "model"], [2, 3])
    >>> grid.get_comm_list("model"), grid.get_rank(data=1, model=0)
    ([[0, 1, 2], [3, 4, 5]], 3)
    """

    def __init__(
        self,
        hybrid_group_names=["data", "pipe", "sharding", "sep", "context", "model"],  # noqa: B006
        dims=[1, 1, 1, 1, 1, 1],  # noqa: B006
    ):
        if len(hybrid_group_names) != len(dims) or min(dims, default=0) < 1:
            raise value_error(
                f"CommunicateTopology({list(hybrid_group_names)}, {list(dims)})",
                expected="a size, 1 or more, for each name",
            )
        self.names, self.dims = [*hybrid_group_names], [*dims]
        self.coordinate = namedtuple("Coordinate", self.names)
        self.places = [self.coordinate(*coordinate) for coordinate in product(*map(range, dims))]

    def axis(self, name: str) -> int:
        """The number of the axis with a name."""
        if name not in self.names:
            raise value_error(f"no axis {name!r}", expected=f"one of {self.names}")
        return self.names.index(name)

    def get_hybrid_group_names(self) -> list[str]:
        """The names of the axes."""
        return self.names

    def get_dim(self, axis_name) -> int:
        """The number of ranks along an axis."""
        return self.dims[self.axis(axis_name)]

    get_dim_size = get_dim

    def world_size(self) -> int:
        """The number of all ranks."""
        return len(self.places)

    def get_rank(self, **args) -> int:
        """The rank at a coordinate; every axis must be given."""
        if args.keys() != {*self.names} or any(
            not 0 <= args[name] < n for name, n in zip(self.names, self.dims)
        ):
            raise value_error(
                f"get_rank({args}) of a grid of size {self.dims}",
                expected=f"a place on {self.names}",
            )
        return self.places.index(self.coordinate(**args))

    def get_coord(self, rank):
        """The coordinate of a rank."""
        if not 0 <= rank < self.world_size():
            raise value_error(f"rank {rank}", expected=f"0 to {self.world_size() - 1}")
        return self.places[rank]

    def get_axis_list(self, axis_name, index) -> list[int]:
        """The ranks whose coordinate on an axis is `index`."""
        axis = self.axis(axis_name)
        return [rank for rank, coordinate in enumerate(self.places) if coordinate[axis] == index]

    def get_comm_list(self, axis_name) -> list[list[int]]:
        """The groups of ranks along an axis."""
        return self.get_fused_ranks([axis_name])

    def get_fused_ranks(self, fused_axis) -> list[list[int]]:
        """The groups of ranks that differ on some axes only."""
        axes, groups = {*map(self.axis, fused_axis)}, {}
        for rank, coordinate in enumerate(self.places):
            others = tuple(k for axis, k in enumerate(coordinate) if axis not in axes)
            groups.setdefault(others, []).append(rank)
        return [*groups.values()]

    def get_rank_from_stage(self, global_rank, **kwargs) -> int:
        """The rank at the coordinate of `global_rank`, with the given axes replaced."""
        return self.get_rank(**(self.get_coord(global_rank)._asdict() | kwargs))


class HybridCommunicateGroup:
    """The groups that this rank is in, one along each axis of a topology. All ranks make it
    together; the topology has as many.

    mesh: the ranks of this one's stage, a `ProcessMesh` with the dimensions dp, sharding, sep, mp
        that have more than one rank
    `hybrid_configs` are settings of NCCL in Paddle, which change nothing here.

    >>> from minipaddle.distributed import fleet
    >>> def work():
    ...     strategy = fleet.DistributedStrategy()
    ...     strategy.hybrid_configs = {"dp_degree": 2, "mp_degree": 2}
    ...     fleet.init(is_collective=True, strategy=strategy)
    ...     group = fleet.get_hybrid_communicate_group()
    ...     return group.get_data_parallel_rank(), group.get_model_parallel_group().ranks
    >>> paddle.distributed.spawn(work, nprocs=4).results
    [(0, [0, 1]), (0, [0, 1]), (1, [2, 3]), (1, [2, 3])]
    """

    def __init__(self, topology, hybrid_configs=None):
        sizes = {name: topology.get_dim(name) for name in AXES}
        known, world = prod(sizes.values()), get_world_size()
        if known != topology.world_size() or known != world:
            raise value_error(
                f"a topology of {topology.names} with {topology.dims} ranks, in a world of {world}",
                expected=f"as many ranks as there are, on the axes {[*AXES]}",
            )
        self._topology, self.sizes, self.global_rank = topology, sizes, get_rank()
        self.place, self.made_groups = topology.get_coord(self.global_rank), {}
        self.groups = {name: self.make_group(topology.get_comm_list(name)) for name in AXES}
        self.checks = {  # the ranks that clip by one norm: they share a part of the data
            name: self.make_group([topology.get_axis_list(name, k) for k in range(sizes[name])])
            for name in ("data", "sharding")
        }
        if sizes["sep"] > 1:
            for pair in (("data", "sep"), ("pipe", "model")):
                self.groups[pair] = self.make_group(topology.get_fused_ranks(pair))
        cut = [n for n in topology.names if n in AXES and n != "pipe" and sizes[n] > 1] or ["model"]
        names, shape = [AXES[name] for name in cut], [sizes[name] for name in cut]
        stage = topology.get_axis_list("pipe", self.place.pipe)
        self.mesh = ProcessMesh(None, names, shape, stage)

    def make_group(self, lists: list[list[int]]):
        """Make groups, in all ranks; return the one that this rank is in."""
        key = tuple(map(tuple, lists))
        if key not in self.made_groups:
            self.made_groups[key] = next(g for g in list(map(new_group, lists)) if g.rank >= 0)
        return self.made_groups[key]

    def find_along_sep(self, name):
        """The group with a name; ValueError if sep has one rank."""
        if self.sizes["sep"] == 1:
            raise value_error("a group along sep", expected="a sep_degree of more than 1")
        return self.groups[name]

    def topology(self) -> CommunicateTopology:
        """The grid of ranks."""
        return self._topology

    def get_global_rank(self) -> int:
        """The number of this rank."""
        return self.global_rank

    def get_parallel_mode(self) -> int | None:
        """The kind of parallelism, a number of `ParallelMode`."""
        return next((mode for name, mode in MODES.items() if self.sizes[name] > 1), None)

    def get_data_parallel_rank(self) -> int:
        """This rank's coordinate along data."""
        return self.place.data

    def get_data_parallel_world_size(self) -> int:
        """The number of ranks along data."""
        return self.sizes["data"]

    def get_data_parallel_group(self):
        """The group along data."""
        return self.groups["data"]

    def get_data_parallel_group_src_rank(self) -> int:
        """The first rank of the group along data."""
        return self.groups["data"].ranks[0]

    def get_model_parallel_rank(self) -> int:
        """This rank's coordinate along model."""
        return self.place.model

    def get_model_parallel_world_size(self) -> int:
        """The number of ranks along model."""
        return self.sizes["model"]

    def get_model_parallel_group(self):
        """The group along model."""
        return self.groups["model"]

    def get_model_parallel_group_src_rank(self) -> int:
        """The first rank of the group along model."""
        return self.groups["model"].ranks[0]

    def get_sharding_parallel_rank(self) -> int:
        """This rank's coordinate along sharding."""
        return self.place.sharding

    def get_sharding_parallel_world_size(self) -> int:
        """The number of ranks along sharding."""
        return self.sizes["sharding"]

    def get_sharding_parallel_group(self):
        """The group along sharding."""
        return self.groups["sharding"]

    def get_sharding_parallel_group_src_rank(self) -> int:
        """The first rank of the group along sharding."""
        return self.groups["sharding"].ranks[0]

    def get_sep_parallel_rank(self) -> int:
        """This rank's coordinate along sep."""
        return self.place.sep

    def get_sep_parallel_world_size(self) -> int:
        """The number of ranks along sep."""
        return self.sizes["sep"]

    def get_sep_parallel_group(self):
        """The group along sep; ValueError if it has one rank."""
        return self.find_along_sep("sep")

    def get_sep_parallel_group_src_rank(self) -> int:
        """The first rank of the group along sep; ValueError if it has one rank."""
        return self.find_along_sep("sep").ranks[0]

    def get_dp_sep_parallel_group(self):
        """The group along data and sep; ValueError if sep has one rank."""
        return self.find_along_sep(("data", "sep"))

    def get_pp_mp_parallel_group(self):
        """The group along pipe and model; ValueError if sep has one rank, as in Paddle."""
        return self.find_along_sep(("pipe", "model"))

    def get_stage_id(self) -> int:
        """This rank's coordinate along pipe."""
        return self.place.pipe

    def get_pipe_parallel_world_size(self) -> int:
        """The number of ranks along pipe."""
        return self.sizes["pipe"]

    def get_pipe_parallel_group(self):
        """The group along pipe."""
        return self.groups["pipe"]

    def get_p2p_groups(self):
        """Raise NotImplementedError: neighbours in a pipeline have no groups of their own."""
        raise not_supported("get_p2p_groups", hint="get_pipe_parallel_group()")

    def get_rank_from_stage(self, stage_id, **kwargs) -> int:
        """The rank at this one's coordinate in another stage."""
        return self._topology.get_rank_from_stage(self.global_rank, pipe=stage_id, **kwargs)

    def get_check_parallel_group(self, sharding=False):
        """The ranks that check together whether gradients are finite."""
        return self.checks["sharding" if sharding else "data"]

    def get_moe_sharding_parallel_world_size(self) -> int:
        """Return 0: experts are not implemented."""
        return 0

    def create_fuse_group(self, fused_strategy_list, nccl_config=None):
        """The groups of ranks that differ on some axes only: (all of them, this rank's).
        `nccl_config` changes nothing here.
        """
        ranks = self._topology.get_fused_ranks(fused_strategy_list)
        return ranks, self.make_group(ranks)


def get_hybrid_communicate_group() -> HybridCommunicateGroup:
    """The groups of `fleet.init`; RuntimeError before it.

    >>> from minipaddle.distributed import fleet
    >>> def work():
    ...     fleet.init(is_collective=True)
    ...     return fleet.get_hybrid_communicate_group().get_data_parallel_world_size()
    >>> paddle.distributed.spawn(work, nprocs=2).results
    [2, 2]
    """
    if current.now is None:
        raise runtime_error("no groups before fleet.init(is_collective=True)")
    return current.now
