"""The step of a rank of a mesh: kernels with the times of a data sheet, and bytes of messages.

Nothing is computed: the step is captured, partitioned and optimised as if it would run.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ...codegen.products.product import product_of
from ...engine.core.errors import value_error
from ...engine.core.record import Record
from ...engine.ir.program import Program, regions
from ...engine.passes.lifetimes import bytes_of, is_view, roots, specs_of
from ...engine.passes.manager import optimized
from ...engine.sharding.array import sharded
from ...engine.sharding.pieces import MeshView
from ...ops.products import product
from ..collectives.operators import COLLECTIVES
from .cluster import Cluster, Device
from .collectives import all_reduce_along, seconds
from .timeline import Half, Timeline, TimelinePiece, pieces_of, simulate


class StepPlan(NamedTuple):
    """The pieces of a step and the bytes of its buckets, for `simulate`; the rank's view of its
    mesh; its program; the bytes of its states.
    """

    pieces: list[TimelinePiece]
    nbytes: list[int]
    view: MeshView
    program: Program
    held: int

    @property
    def received(self) -> float:
        """The bytes that a rank receives: 2 n (p - 1) / p for a sum of n bytes over p ranks."""
        parts = dict(zip(self.view.groups, self.view.shape))
        size = prod(self.view.shape)
        ranks = [parts.get(n.group, size) for n in self.nbytes]
        return sum(
            (1 if type(n) is Half else 2) * n * (p - 1) / p for n, p in zip(self.nbytes, ranks)
        )

    def simulate_on(self, cluster: Cluster, **options) -> Timeline:
        """Simulate the step on a cluster: rank r of the mesh, whose last dimension varies fastest,
        is device r. Each collective runs together with the same one on all other lines of the mesh.
        """
        if prod(self.view.shape) != cluster.size:
            raise value_error(f"a mesh of shape {self.view.shape} on {cluster.size} devices")
        schedules = {
            group: all_reduce_along(self.view.shape, axis, cluster)
            for axis, group in enumerate(self.view.groups)
        }

        world = all_reduce_along((cluster.size,), 0, cluster)

        def cost(nbytes) -> float:
            schedule = schedules.get(nbytes.group, world)
            return seconds(schedule, nbytes, cluster) if schedule.parts > 1 else 0.0

        return simulate(self.pieces, self.nbytes, cluster, cost=cost, **options)


def plan_step(step, inputs, device: Device, **options) -> StepPlan:
    """Plan the step of this rank: a function of `to_static`, with some sharded tensors.
    `options` are switches of the passes.

    >>> import minipaddle.distributed as dist
    >>> from minipaddle.distributed.simulator import A100, NVLINK, Cluster, plan_step, pretend
    >>> def work():
    ...     mesh, net = dist.ProcessMesh([*range(8)]), paddle.nn.Linear(64, 64)
    ...     dist.shard_layer(net, mesh)
    ...     sgd = paddle.optimizer.SGD(0.1, net.parameters())
    ...     @paddle.jit.to_static
    ...     def step(x):
    ...         (net(x) ** 2).sum().backward()
    ...         sgd.step()
    ...     x = dist.shard_tensor(paddle.ones([80, 64]), mesh, [dist.Shard(0)])
    ...     return plan_step(step, [x], A100)
    >>> plan = pretend(work, ranks=8)
    >>> efficiency = plan.simulate_on(Cluster(1, 8, NVLINK)).efficiency
    >>> sum(plan.nbytes) == 4 * (64 * 64 + 64), efficiency < 0.1
    (True, True)
    """
    captured, tensors = step.capture_for(tuple(inputs), {})
    program = captured.program
    arrays = [x.array for x in tensors] + [s.storage.read() for s in program.states]
    view = next((a.view for a in arrays if sharded(a)), None)
    if view is None:
        raise value_error(f"plan_step({step}) of full tensors", "dist.shard_tensor(x, mesh, …)")
    placements = [getattr(a, "placements", view.replicated) for a in arrays]
    part, _ = captured.executables.part_of(program, placements, view, captured.terms)
    part = optimized(part, **options).program
    root = roots(part)
    kernels = [r for r in part.records if not is_view(r, root) and r.op not in COLLECTIVES]
    times = [(device.seconds(*work_of(r, root)), r) for r in kernels]
    held = sum(getattr(a, "local", a).nbytes for a in arrays[len(tensors) :])
    return StepPlan(*pieces_of(part, times), view, part, held)


def work_of(record: Record, root: dict) -> tuple[int, int]:
    """The operations of a record, and the bytes that it reads and writes."""
    read = {root.get(x, x): x.spec for x in record.inputs if x.dtype is not None}
    nbytes = sum(map(bytes_of, [*read.values(), *specs_of(record)]))
    inside = [r for program in regions(record).values() for r in program.records]
    return sum(map(operations_of, inside or [record])), nbytes


def operations_of(record: Record) -> int:
    """A multiplication and an addition for each term of a product, one for each other element."""
    count = OPERATIONS.get(record.op)
    return count(record) if count else sum(spec.size for spec in specs_of(record))


def count_product(record: Record) -> int:
    x, y = (r.spec for r in record.inputs)
    return 2 * product_of(x, y, record.spec, **record.attrs).work


OPERATIONS = {product: count_product}
"""The operations of a record, of operators with more than one for each element."""
