"""Pictures: code, tapes, models, gradients, operators, curves, profiles, programs and passes."""

from .cache import cache, recompilations
from .code import code
from .curves import Curves, tuning
from .difference import difference
from .engine import Graph, NoEngineError
from .events import LogWriter
from .first_step import first_step
from .flow import gradient_flow
from .joint import joint
from .memory import memory
from .module import module
from .native import kernels, source
from .operator import operator
from .pair import beside
from .parallel import buckets, collective, timeline
from .passes import passes
from .pipeline import pipeline
from .placements import placements
from .plans import plan_map
from .profile import profile
from .program import groups, partition, program
from .stages import stages
from .tape import source_lines, tape
from .transpiling import source_diff, transpiling
