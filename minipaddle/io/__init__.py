"""Data: data sets, the order they are read in, batches, worker processes; saving and loading."""

from .buckets import bucketed
from .collate import default_collate_fn, default_convert_fn
from .dataloader import DataLoader
from .dataset import *
from .sampler import *
from .serialization import load, save
from .worker import get_worker_info
