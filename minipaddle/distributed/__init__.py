"""Many workers. Source: Paddle API `paddle.distributed`."""

from ..core.missing import namespace
from ..engine.distributed.process_group import CollectiveTimeout, PeerFailed
from ..engine.sharding.placements import Partial, Placement, ProcessMesh, Replicate, Shard
from . import auto_parallel, fleet, sharding
from .auto_parallel.api import dtensor_from_fn
from .auto_parallel.dist_model import DistModel, to_static
from .auto_parallel.layers import shard_layer
from .auto_parallel.loaders import ShardDataloader, shard_dataloader
from .auto_parallel.local import LocalLayer, local_map
from .auto_parallel.mesh import get_mesh, set_mesh
from .auto_parallel.stages import (
    ShardingStage1,
    ShardingStage2,
    ShardingStage3,
    shard_optimizer,
    shard_scaler,
)
from .auto_parallel.strategy import Strategy
from .checkpoint import load_state_dict, save_state_dict
from .collectives.python_objects import (
    all_gather_object,
    broadcast_object_list,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .communication import (
    P2POp,
    all_gather,
    all_reduce,
    all_to_all,
    alltoall,
    alltoall_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    gather,
    irecv,
    isend,
    recv,
    reduce,
    reduce_scatter,
    scatter,
    send,
    wait,
)
from .fleet.topology import ParallelMode
from .parallel import (
    ParallelEnv,
    ReduceOp,
    destroy_process_group,
    get_backend,
    get_group,
    get_rank,
    get_world_size,
    init_parallel_env,
    is_available,
    is_initialized,
    new_group,
)
from .pipeline.splitting import SplitPoint
from .ps.entries import CountFilterEntry, ProbabilityEntry
from .ranks.spawning import spawn
from .sharding import group_sharded_parallel, save_group_sharded_model
from .tensors.data_parallel import DataParallel
from .tensors.dist_tensor import ReduceType, reshard, shard_tensor, unshard_dtensor
from .tensors.layer_plans import (
    ColWiseParallel,
    PrepareLayerInput,
    PrepareLayerOutput,
    RowWiseParallel,
    SequenceParallelBegin,
    SequenceParallelDisable,
    SequenceParallelEnable,
    SequenceParallelEnd,
)
from .tensors.parallelize import parallelize, to_distributed

__getattr__ = namespace("paddle.distributed", globals())
