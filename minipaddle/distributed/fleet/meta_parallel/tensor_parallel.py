"""`TensorParallel`: the model of `fleet.distributed_model` on a mesh of several dimensions."""

from ....core.prelude import Tensor, type_error
from ....nn import Layer
from ...tensors.layout import Wrapper, put_on_mesh, require_pieces
from ..topology import HybridCommunicateGroup


class TensorParallel(Wrapper):
    """`layers` on the mesh of `hcg`: parameters on no mesh yet are replicated with the values of
    rank 0.

    Inputs are sharded tensors, the batch along dp and sharding; only if mp alone has several ranks,
    these may pass the same local tensor. `strategy=` is Paddle's, and changes nothing: the strategy
    of `fleet.init` applies.

    >>> from minipaddle import distributed as dist
    >>> from minipaddle.distributed import fleet
    >>> def work():
    ...     strategy = fleet.DistributedStrategy()
    ...     strategy.hybrid_configs = {"dp_degree": 2, "mp_degree": 2}
    ...     fleet.init(is_collective=True, strategy=strategy)
    ...     net = fleet.distributed_model(fleet.meta_parallel.ColumnParallelLinear(4, 6))
    ...     mesh = fleet.get_hybrid_communicate_group().mesh
    ...     y = net(dist.shard_tensor(paddle.ones([8, 4]), mesh, [dist.Shard(0)]))
    ...     return y.shape, y._local_shape
    >>> dist.spawn(work, nprocs=4).results[0]
    ([8, 6], [4, 6])
    """

    def __init__(self, layers: Layer, hcg: HybridCommunicateGroup, **kwargs):
        if unknown := kwargs.keys() - {"strategy"}:
            raise type_error(
                f"TensorParallel with {min(unknown)}", expected="layers, hcg, strategy"
            )
        super().__init__(layers, "tensor_parallel")
        self.mesh = hcg.mesh
        put_on_mesh(layers.parameters(), hcg.mesh)

    def forward(self, *inputs, **kwargs):
        if self.mesh.dim_names != ["mp"]:
            for x in (*inputs, *kwargs.values()):
                if isinstance(x, Tensor):
                    require_pieces(x, type(self._layers).__name__)
        return super().forward(*inputs, **kwargs)
