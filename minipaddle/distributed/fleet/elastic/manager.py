"""The actions of `launch` when a rank is lost, by Paddle's names."""

from enum import IntEnum

from ...failures.restarting import ELASTIC_EXIT_CODE  # noqa: F401  (Paddle has it here)


class ElasticLevel(IntEnum):
    """The ranks that `launch --elastic_level` starts after some were killed: FAULT_TOLERANCE (1) as
    many as before, ELASTIC (2) those that are left.

    >>> from minipaddle.distributed.fleet.elastic import ElasticLevel
    >>> ElasticLevel(2).name
    'ELASTIC'
    """

    FAULT_TOLERANCE = 1
    ELASTIC = 2
