"""The functions of `paddle.nn.functional`: one file per family."""

from ...tensor.norms import pdist
from .activation import *
from .attention import *
from .classification import *
from .common import *
from .conv import *
from .distance import *
from .input import *
from .loss import *
from .norm import *
from .padding import *
from .pooling import *
from .regression import *
from .sampling import *
from .sequence import *
from .vision import *
