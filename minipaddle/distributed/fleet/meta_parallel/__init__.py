"""Source: Paddle API `paddle.distributed.fleet.meta_parallel`."""

from ....core.missing import namespace
from .layers import (
    ColumnParallelLinear,
    ParallelCrossEntropy,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from .pipeline_layer import LayerDesc, PipelineLayer, SharedLayerDesc
from .pipeline_parallel import PipelineParallel
from .randomness import RNGStatesTracker, get_rng_state_tracker, model_parallel_random_seed
from .tensor_parallel import TensorParallel

__getattr__ = namespace("paddle.distributed.fleet.meta_parallel", globals())
