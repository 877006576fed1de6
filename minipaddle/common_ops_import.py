"""Names that Paddle's operators written in Python import. Source: Paddle
`paddle.common_ops_import`.
"""

from .base.core import VarDesc
from .base.data_feeder import check_dtype, check_type, check_variable_and_dtype, convert_dtype
from .base.framework import Variable, convert_np_dtype_to_dtype_, in_dynamic_mode
from .base.layer_helper import LayerHelper
from .core.missing import namespace as _namespace

__getattr__ = _namespace("paddle.common_ops_import", globals())
