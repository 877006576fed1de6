"""Data: data sets, the order they are read in, batches, worker processes; saving and loading."""

from ..core.missing import namespace as _namespace
from .buckets import bucketed
from .collate import default_collate_fn, default_convert_fn
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ComposeDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .sampler import (
    BatchSampler,
    DistributedBatchSampler,
    RandomSampler,
    Sampler,
    SequenceSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .serialization import load, save
from .worker import get_worker_info

__getattr__ = _namespace("paddle.io", globals())
