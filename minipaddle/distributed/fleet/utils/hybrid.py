"""Gradients of ranks that have the same weights. Source: Paddle
`paddle.distributed.fleet.utils.hybrid_parallel_util`.
"""

from ...ranks.known_groups import group_of
from ...tensors.data_parallel import average_gradients


def fused_allreduce_gradients(parameter_list, hcg=None) -> None:
    """Average the gradients of parameters over the ranks of `hcg`'s data-parallel group, or all.

    Programs call it after a backward that `DataParallel` did not see, as under `no_sync`.

    >>> import minipaddle.distributed as dist
    >>> from minipaddle.distributed.fleet.utils.hybrid_parallel_util import (
    ...     fused_allreduce_gradients)
    >>> def work():
    ...     w = paddle.create_parameter([1], "float32")
    ...     (w * dist.get_rank()).backward()
    ...     fused_allreduce_gradients([w])
    ...     return w.grad.item()
    >>> dist.spawn(work, nprocs=2).results
    [0.5, 0.5]
    """
    average_gradients(parameter_list, group_of(hcg and hcg.get_data_parallel_group()))
