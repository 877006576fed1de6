"""Text written token by token: a cache of keys and values, sampling, beams, drafts, many texts.

Source: PaddleNLP's `generate` for the choices; the sources of the mechanisms stand in their files.
"""

from .beams import search_beams
from .cache import CacheView, KeyValueCache
from .decoder import Decoder
from .drafts import write_with_draft
from .sampling import Sampler
from .scheduler import Request, Scheduler

__all__ = [
    "CacheView",
    "Decoder",
    "KeyValueCache",
    "Request",
    "Sampler",
    "Scheduler",
    "search_beams",
    "write_with_draft",
]  # fmt: skip
