"""Source: Paddle API `paddle.distributed.fleet`."""

from ...core.missing import namespace
from . import elastic, meta_parallel, utils
from .model import (
    barrier_worker,
    distributed_model,
    distributed_optimizer,
    distributed_scaler,
    init,
    is_first_worker,
    worker_index,
    worker_num,
)
from .recompute import recompute, recompute_sequential
from .roles import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker
from .servers import (
    init_server,
    init_worker,
    is_server,
    is_worker,
    report,
    run_server,
    save_persistables,
    server_index,
    server_num,
    stop_worker,
)
from .strategy import DistributedStrategy
from .topology import (
    CommunicateTopology,
    HybridCommunicateGroup,
    get_hybrid_communicate_group,
)

__getattr__ = namespace("paddle.distributed.fleet", globals())
