"""MiniPaddle: the deep-learning framework to learn from. `import minipaddle as paddle`."""

from .core.slots import plugged
from .eager.backward import grad
from .eager.tensor import Parameter, Tensor
from .tensor import attribute, creation, linalg, logic, manipulation, random, search, stat
from .tensor.attribute import *
from .tensor.creation import *
from .tensor.einsum import *
from .tensor.generator import *
from .tensor.inplace import *
from .tensor.linalg import *
from .tensor.logic import *
from .tensor.manipulation import *
from .tensor.math import *
from .tensor.random import *
from .tensor.reduce import *
from .tensor.search import *
from .tensor.stat import *

