"""A simulator of many devices: all-reduce on links, and a training step on a cluster.

>>> from minipaddle.distributed.simulator import PCIE, Cluster, TimelinePiece, ring
>>> from minipaddle.distributed.simulator import seconds, simulate
>>> eight = Cluster(1, 8, PCIE)
>>> f"{seconds(ring(8), 100e6, eight) * 1e3:.1f} ms"
'17.6 ms'
>>> step = [TimelinePiece("backward", 0.1, starts=(0,)), TimelinePiece("update", 0.01, waits=(0,))]
>>> f"{simulate(step, [100e6], eight).efficiency:.0%}"
'86%'
"""

from .cluster import *
from .collectives import *
from .measuring import Watch, fit_link, link_of, measure_step, slow_down, timeline_of
from .planning import StepPlan, plan_step, work_of
from .pretending import PretendedGroup, pretend
from .timeline import Activity, Bytes, Half, Timeline, TimelinePiece, best_of, pieces_of, simulate
