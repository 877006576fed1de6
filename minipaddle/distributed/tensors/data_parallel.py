"""`DataParallel`: every rank trains a copy of the model on its own data."""

from contextlib import contextmanager

from ...eager.modes import no_grad
from ...engine.core.errors import value_error
from ...engine.distributed.reducer import Reducer
from ...engine.eager.backward import AVERAGING
from ...engine.sharding.placements import ProcessMesh
from ...nn import Layer
from ..communication import all_reduce, broadcast
from ..parallel import ReduceOp
from ..ranks.known_groups import group_numbered, group_of
from ..ranks.require_same import require_same
from .layout import Wrapper


class DataParallel(Wrapper):
    """`layers`, whose gradients every backward averages over the ranks: all copies stay the same.

    All ranks begin with the weights of rank 0. Each computes the mean loss of its own batch; if
    batches have one size, the average of the gradients is the gradient of the joined batch.
    comm_buffer_size: the most MB of gradients in an all-reduce
    last_comm_buffer_size: the same for the last one, which overlaps with no computation
    find_unused_parameters: may a backward leave parameters without a gradient?
    `strategy` is Paddle's older way to say so, and not used.

    >>> def work():
    ...     net = paddle.DataParallel(paddle.nn.Linear(1, 1, bias_attr=False))
    ...     net(paddle.to_tensor([[1.0 + paddle.distributed.get_rank()]])).backward()
    ...     return net.parameters()[0].grad.item()
    >>> paddle.distributed.spawn(work, nprocs=2).results
    [1.5, 1.5]
    """

    def __init__(
        self, layers, strategy=None, comm_buffer_size=25, last_comm_buffer_size=1,
        find_unused_parameters=False, group=None,
    ):  # fmt: skip
        super().__init__(layers, "data_parallel")
        self.group, self.find_unused_parameters = group_of(group), find_unused_parameters
        trained = [p for p in layers.parameters() if p.trainable]
        if not trained:
            raise value_error("DataParallel of a model without a parameter to train")
        self.reducer = None
        if self.group.size > 1:
            broadcast_model(layers, self.group)
            sizes = comm_buffer_size, last_comm_buffer_size
            self.reducer = Reducer(trained, self.group, sizes, find_unused_parameters)
            how = {"group": self.group.id, "ranks": self.group.size, "bucket_mb": comm_buffer_size}
            for p in trained:  # how a program that is traced averages: see `Tensor.receive`
                p.averaged = how

    @contextmanager
    def no_sync(self):
        """Gradients stay local inside the block; the next backward after it averages their sums."""
        before, AVERAGING.now = AVERAGING.now, False
        try:
            yield
        finally:
            AVERAGING.now = before

    def scale_loss(self, loss):
        """The loss itself: gradients are averaged, not added."""
        return loss

    def apply_collective_grads(self) -> None:
        """Average the gradients that parameters have now."""
        average_gradients(self._layers.parameters(), self.group)


def broadcast_model(layers: Layer, group) -> None:
    """Give all ranks of a group the parameters and buffers of its first; ValueError that names the
    ones of another shape or dtype.
    """
    group = group_numbered(group.id)  # ValueError in a rank that is not in it
    tensors = dict([*layers.named_parameters(), *layers.named_buffers()])
    mesh = ProcessMesh([*group.ranks], ["dp"])
    require_same("DataParallel", mesh, {name: [x.spec] for name, x in tensors.items()})
    for x in tensors.values():
        broadcast(x, group.ranks[0], group)


@no_grad()
def average_gradients(parameters, group) -> None:
    """Average the gradients that parameters have over the ranks of a group."""
    for p in parameters if group.size > 1 else ():
        if p.grad is not None:
            all_reduce(p.grad, ReduceOp.AVG, group)
