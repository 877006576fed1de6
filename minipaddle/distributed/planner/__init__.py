"""How a training job is laid out on a cluster: the best mesh, what it costs, what comes next.

A model's own program says what it computes, keeps and sends (`figures`); data sheets say how fast
a device and its links are (`simulator.cluster`); a layout is data (`Layout`), `StageJob.cost` its
seconds and bytes, `plan` compares all of them, and `apply_plan` trains as the best one says.
"""

from .applying import apply_plan
from .cost import OURS, Cost, Footprint, Recipe, Seconds, StageJob
from .figures import Tally, figures
from .layout import AXES, Layout, coordinates
from .report import describe
from .search import Planned, SearchLimits, plan, search
