"""The layout of a training job on a cluster: the best mesh, its cost, and the next best.

A model's own program gives what it computes, keeps and sends (`figures`); data sheets give the
speed of a device and its links (`simulator.cluster`); a layout is data (`Layout`), `StageJob.cost`
its seconds and bytes, `plan` compares all of them, and `apply_plan` trains in the best one.
"""

from .applying import apply_plan
from .cost import OURS, Cost, Footprint, Recipe, Seconds, StageJob
from .figures import Tally, figures
from .layout import AXES, Layout, coordinates
from .report import describe
from .search import SearchLimits, SearchResult, plan, search
