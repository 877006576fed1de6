"""Pictures: code, tapes, models, gradients, operators, curves, profiles, programs and passes."""

from .cache import cache, recompilations
from .code import code
from .compiled import first_step, kernels, source
from .curves import Curves, tuning
from .difference import difference
from .event_files import LogWriter
from .explore import explore
from .forward_backward import joint
from .gradient_flow import gradient_flow
from .graph_engine import Graph, NoEngineError, beside
from .memory import memory
from .module import module
from .movable import movable
from .operator import operator
from .parallel import buckets, collective, pipeline, timeline
from .passes import passes
from .placements import placements
from .plans import plan_map
from .profile import profile
from .program import groups, partition, program
from .tape import source_lines, tape
from .transpiling import source_diff, transpiling
from .zero_stages import stages
