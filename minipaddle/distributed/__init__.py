"""Many workers. Source: Paddle API `paddle.distributed`."""

from ..engine.distributed.process_group import CollectiveTimeout, PeerFailed
from ..engine.sharding.placements import Partial, Placement, ProcessMesh, Replicate, Shard
from . import auto_parallel, fleet, sharding
from .auto_parallel.api import dtensor_from_fn
from .auto_parallel.dist_model import DistModel, to_static
from .auto_parallel.layers import shard_layer
from .auto_parallel.loaders import ShardDataloader, shard_dataloader
from .auto_parallel.local import LocalLayer, local_map
from .auto_parallel.mesh import get_mesh, set_mesh
from .auto_parallel.stages import *
from .auto_parallel.strategy import Strategy
from .checkpoint import load_state_dict, save_state_dict
from .collectives.python_objects import *
from .communication import *
from .fleet.topology import ParallelMode
from .parallel import *
from .pipeline.splitting import SplitPoint
from .ps.entries import CountFilterEntry, ProbabilityEntry
from .ranks.spawning import spawn
from .sharding import group_sharded_parallel, save_group_sharded_model
from .tensors.data_parallel import DataParallel
from .tensors.dist_tensor import ReduceType, reshard, shard_tensor, unshard_dtensor
from .tensors.layer_plans import *
from .tensors.parallelize import parallelize, to_distributed
