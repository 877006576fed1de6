"""Training that continues when ranks are lost.

`launch --max_restart` restarts a script when a rank has died; `steps` lets the script continue
leave and join while training continues. Source: Paddle API `paddle.distributed.fleet.elastic`.
"""

from .manager import ELASTIC_EXIT_CODE, ElasticLevel
from .samples import own_samples
from .steps import steps
from .workers import Workers
