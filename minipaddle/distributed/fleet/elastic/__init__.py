"""Training that goes on when ranks are lost.

`launch --max_restart` starts a script again when a rank has died; `steps` lets the script go on
leave and join while training goes on. Source: Paddle API `paddle.distributed.fleet.elastic`.
"""

from .manager import ELASTIC_EXIT_CODE, ElasticLevel
from .samples import own_samples
from .steps import steps
from .workers import Workers
