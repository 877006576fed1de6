"""From a list of samples to one batch.

Batches are made of NumPy arrays until they reach the process that trains: only there do arrays
become tensors.
"""

import numbers

import numpy

from ..engine.core.errors import type_error, value_error
from ..engine.eager.device import CPU
from ..engine.eager.tensor import Tensor


def default_collate_fn(batch: list):
    """Samples stacked along a new first axis, field by field.

    Tuples and lists give a list of fields, dicts a dict; tensors, arrays, numbers and booleans
    are stacked, strings and bytes stay a list. Raises ValueError when shapes or fields differ,
    TypeError for anything else. Source: Paddle API `paddle.io.DataLoader`.

    >>> x, y = paddle.io.default_collate_fn([([1.0, 2.0], 7), ([3.0, 4.0], 8)])
    >>> y.tolist()
    [7, 8]
    """
    return collate(batch, "the sample")


def collate(batch: list, where: str):
    first = batch[0]
    if isinstance(first, Tensor):
        return stack([CPU.move(t.array) for t in batch], where)
    if isinstance(first, numpy.ndarray | numpy.generic):
        return stack(batch, where)
    if isinstance(first, bool | numbers.Number):
        return numpy.array(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, dict):
        if any(sample.keys() != first.keys() for sample in batch):
            raise ValueError(f"the keys of {where} differ within a batch")
        return {k: collate([sample[k] for sample in batch], f"{where}[{k!r}]") for k in first}
    if isinstance(first, list | tuple):
        lengths = {len(sample) for sample in batch}
        if len(lengths) > 1:
            what = f"{where} has {sorted(lengths)} fields within one batch"
            raise value_error(what, hint="give DataLoader a collate_fn that pads")
        return [collate(list(field), f"{where}[{k}]") for k, field in enumerate(zip(*batch))]
    raise type_error(
        f"{where} is {type(first).__name__}: the default collate_fn cannot make a batch of it",
        expected="tensors, arrays, numbers, strings, or lists, tuples and dicts of them",
        hint="give DataLoader a collate_fn",
    )


def stack(arrays: list, where: str):
    try:
        return numpy.stack(arrays)
    except ValueError:
        shapes = ", ".join(map(str, sorted({numpy.shape(a) for a in arrays})))
        what = f"{where} has different shapes within one batch: {shapes}"
        hint = "bring the samples to one shape, or give DataLoader a collate_fn that pads"
        raise value_error(what, hint=hint) from None


def default_convert_fn(sample):
    """A sample as it is, its arrays to become tensors: what `batch_size=None` does."""
    return sample


def as_tensors(batch):
    """The batch with every array in it a tensor; a tuple becomes a list, as in Paddle."""
    if isinstance(batch, numpy.ndarray):
        return Tensor(batch) if batch.dtype.kind in "biufV" else batch
    if isinstance(batch, list | tuple):
        return [as_tensors(x) for x in batch]
    if isinstance(batch, dict):
        return {k: as_tensors(v) for k, v in batch.items()}
    return batch
