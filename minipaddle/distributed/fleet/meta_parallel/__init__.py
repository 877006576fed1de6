"""Source: Paddle API `paddle.distributed.fleet.meta_parallel`."""

from .layers import *
from .pipeline_layer import LayerDesc, PipelineLayer, SharedLayerDesc
from .pipeline_parallel import PipelineParallel
from .randomness import RNGStatesTracker, get_rng_state_tracker, model_parallel_random_seed
from .tensor_parallel import TensorParallel
