"""`shard_dataloader`: batches as sharded tensors."""

from ...core.prelude import Tensor, not_supported, type_error, value_error
from ...engine.sharding.placements import REPLICATE, ProcessMesh, Shard
from ...io.dataloader import DataLoader, length_of
from ..ranks.require_same import require_same
from ..tensors.dist_tensor import cut_tensor
from .api import dtensor_from_local
from .mesh import require_mesh


class ShardDataloader:
    """The batches of a loader as sharded tensors: see `shard_dataloader`.

    >>> import minipaddle.distributed as dist
    >>> data = paddle.io.TensorDataset([paddle.arange(4)])
    >>> mesh = dist.ProcessMesh([0], dim_names=["dp"])
    >>> len(dist.shard_dataloader(paddle.io.DataLoader(data, batch_size=2), mesh))
    2
    """

    def __init__(
        self,
        dataloader,
        meshes,
        input_keys=None,
        shard_dims=None,
        is_dataset_splitted=False,
        dense_tensor_idx=None,
    ):
        if not isinstance(dataloader, DataLoader):
            raise type_error(f"shard_dataloader of {dataloader!r:.80}", "a paddle.io.DataLoader")
        mesh_list = [meshes] if isinstance(meshes, ProcessMesh) else list(meshes)
        first, *others = [require_mesh(mesh, "shard_dataloader") for mesh in mesh_list]
        if any(mesh != first for mesh in others):
            raise not_supported(
                f"shard_dataloader on different meshes, {mesh_list}",
                "one mesh: a model in stages takes the batches of the loader itself",
            )
        self._dataloader, self.mesh, self.input_keys = dataloader, first, input_keys
        self.dims = shard_dims
        for dim in shard_dims if isinstance(shard_dims, list | tuple) else [shard_dims]:
            self.placements(dim)  # refuse now, not at the first batch
        self.is_split, self.dense = is_dataset_splitted, dense_tensor_idx
        self.batch_sampler = dataloader.batch_sampler
        settings = {"shard_dims": [shard_dims], "is_dataset_splitted": [is_dataset_splitted]}
        settings |= {"input_keys": [input_keys], "batches": [length_of(dataloader)]}
        require_same("shard_dataloader", first, settings)

    def placements(self, dim) -> list:
        """The placements of a field whose rows are sharded along the mesh dimension `dim`; None:
        replicated.
        """
        placements = [REPLICATE] * self.mesh.ndim
        if dim is not None:
            placements[self.mesh.axis(dim)] = Shard(0)
        return placements

    def __len__(self) -> int:
        return len(self._dataloader)

    def __iter__(self):
        return map(self.shard, self._dataloader)

    __call__ = __iter__

    def shard(self, batch):
        """A sharded batch: a list, or a dict with the keys `input_keys`, in their order."""
        if isinstance(batch, dict):
            keys = [*batch] if self.input_keys is None else [*self.input_keys]
            if missing := [key for key in keys if key not in batch]:
                raise value_error(
                    f"input_keys={keys} of a batch with {[*batch]}: no {missing[0]!r}"
                )
            fields = self.shard_fields([batch[key] for key in keys])
            return dict(zip(keys, fields, strict=True))
        if self.input_keys is not None:
            raise value_error(
                f"input_keys={self.input_keys} of batches that are no dicts", expected="None"
            )
        return self.shard_fields(batch if isinstance(batch, list | tuple) else [batch])

    def shard_fields(self, fields) -> list:
        """Shard each field by its entry of `shard_dims`."""
        n = len(fields)
        dims, dense = self.dims, self.dense
        dims = list(dims) if isinstance(dims, list | tuple) else [dims] * n
        dense = [[] for _ in fields] if dense is None else dense
        for name, each in (("shard_dims", dims), ("dense_tensor_idx", dense)):
            if len(each) != n:
                raise value_error(
                    f"{name}={each} of a batch with {n} fields", expected=f"{n} entries"
                )
        return [self.shard_field(*each) for each in zip(fields, dims, dense, strict=True)]

    def shard_field(self, field, dim, dense):
        """Shard a tensor, or the tensors of a list but those at the positions `dense`."""
        if isinstance(field, list | tuple):
            return [x if k in dense else self.shard_one(x, dim) for k, x in enumerate(field)]
        return field if dense else self.shard_one(field, dim)

    def shard_one(self, x, dim) -> Tensor:
        placements = self.placements(dim)
        if self.is_split:
            return dtensor_from_local(x, self.mesh, placements)
        return cut_tensor(x, self.mesh, placements)


def shard_dataloader(
    dataloader,
    meshes,
    input_keys=None,
    shard_dims=None,
    is_dataset_splitted=False,
    dense_tensor_idx=None,
):
    """The batches of `dataloader` as sharded tensors on a mesh.

    meshes: a mesh, or a list of equal ones
    input_keys: the keys that are used of batches that are dicts
    shard_dims: the mesh dimension along which rows are sharded, by name or number, or one for each
        field of a batch; None: each rank has all rows
    is_dataset_splitted: is each rank's batch its shard of the full batch? Otherwise each rank loads
        the full batch, in the same order, and keeps its rows. (Paddle lets each rank load other
        rows then, so that all of them together have n times as many.)
    dense_tensor_idx: for each field the positions of tensors that stay off the mesh

    Raises TypeError for an argument that is no DataLoader or mesh, ValueError for a dimension that
    the mesh lacks or entries that are not as many as the fields.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1], dim_names=["dp"])
    ...     data = paddle.io.TensorDataset([paddle.arange(5)])
    ...     loader = paddle.io.DataLoader(data, batch_size=3)
    ...     loader = dist.shard_dataloader(loader, mesh, shard_dims="dp")
    ...     return [(x.shape, x._local_value().tolist()) for (x,) in loader]
    >>> for rows in dist.spawn(work, nprocs=2).results:
    ...     print(rows)
    [([3], [0, 1]), ([2], [3])]
    [([3], [2]), ([2], [4])]
    """
    return ShardDataloader(
        dataloader, meshes, input_keys, shard_dims, is_dataset_splitted, dense_tensor_idx
    )
