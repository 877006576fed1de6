"""Data: data sets, the order they are read in, batches, worker processes; saving and loading."""

from ..core.missing import namespace
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

__all__ = [
    "BatchSampler", "ChainDataset", "ComposeDataset", "ConcatDataset", "DataLoader", "Dataset",
    "DistributedBatchSampler", "IterableDataset", "RandomSampler", "Sampler", "SequenceSampler",
    "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "bucketed",
    "get_worker_info", "random_split",
]  # fmt: skip

__getattr__ = namespace("paddle.io", globals())
