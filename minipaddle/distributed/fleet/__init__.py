"""Source: Paddle API `paddle.distributed.fleet`."""

from . import elastic, meta_parallel, utils
from .model import *
from .recompute import recompute, recompute_sequential
from .roles import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker
from .servers import *
from .strategy import DistributedStrategy
from .topology import CommunicateTopology, HybridCommunicateGroup, get_hybrid_communicate_group
