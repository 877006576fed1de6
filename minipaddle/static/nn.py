"""`paddle.static.nn`: layers as functions that make their parameters, and control flow."""

from ..core.prelude import logic, type_error, value_error
from ..distributed.ps.embedding import sparse_embedding
from ..eager.curvature import as_list
from ..engine.eager import control_flow as control
from ..engine.jit.tree import flatten, unflatten
from ..nn import functional as F
from ..nn.layer import batch_norm as norms
from ..nn.layer import common, conv, norm
from ..nn.param_attr import create_parameter
from ..tensor import shaping

__all__ = [
    "batch_norm", "case", "cond", "conv2d", "create_parameter", "embedding", "fc", "layer_norm",
    "sparse_embedding", "switch_case", "while_loop",
]  # fmt: skip


def activate(y, name: str | None):
    """y after the activation of that name."""
    return y if name is None else getattr(F, name)(y)


def fc(
    x, size, num_flatten_dims=1, weight_attr=None, bias_attr=None, activation=None, name=None
):  # fmt: skip
    """A linear layer over the axes from `num_flatten_dims` on, taken as one."""
    shape = x.spec.shape
    lead = num_flatten_dims if num_flatten_dims >= 0 else len(shape) + num_flatten_dims
    rows = shaping.flatten(x, lead) if lead < len(shape) - 1 else x
    layer = common.Linear(rows.spec.shape[-1], size, weight_attr, bias_attr)
    return activate(layer(rows), activation)


def conv2d(
    input, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=None, param_attr=None,
    bias_attr=None, use_cudnn=True, act=None, name=None, data_format="NCHW",
):  # fmt: skip
    """A convolution of [N, C, H, W]."""
    channels = input.spec.shape[1 if data_format == "NCHW" else -1]
    layer = conv.Conv2D(
        channels, num_filters, filter_size, stride, padding, dilation, groups or 1,
        weight_attr=param_attr, bias_attr=bias_attr, data_format=data_format,
    )  # fmt: skip
    return activate(layer(input), act)


def batch_norm(
    input, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None, bias_attr=None,
    data_layout="NCHW", in_place=False, name=None, moving_mean_name=None,
    moving_variance_name=None, do_model_average_for_mean_and_var=True, use_global_stats=False,
):  # fmt: skip
    """Batch normalisation; a clone for testing takes the running statistics."""
    channels = input.spec.shape[1 if data_layout == "NCHW" else -1]
    layer = norms.BatchNorm(
        channels, act, is_test, momentum, epsilon, param_attr, bias_attr,
        data_layout=data_layout, moving_mean_name=moving_mean_name,
        moving_variance_name=moving_variance_name, use_global_stats=use_global_stats,
    )  # fmt: skip
    return layer(input)


def layer_norm(
    input, scale=True, shift=True, begin_norm_axis=1, epsilon=1e-05, param_attr=None,
    bias_attr=None, act=None, name=None,
):  # fmt: skip
    """Layer normalisation over the axes from `begin_norm_axis` on."""
    layer = norm.LayerNorm(
        list(input.spec.shape[begin_norm_axis:]), epsilon=epsilon,
        weight_attr=param_attr if scale else False, bias_attr=bias_attr if shift else False,
    )  # fmt: skip
    return activate(layer(input), act)


def embedding(
    input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None,
    dtype="float32",
):  # fmt: skip
    """Rows of a table of `size` [rows, columns]."""
    options = {"padding_idx": padding_idx, "dtype": dtype, "weight_attr": param_attr}
    return common.Embedding(*size, **options)(input)


# ---- control flow ----------------------------------------------------------------------------


def cond(pred, true_fn=None, false_fn=None, name=None, return_names=None):
    """The result of `true_fn()` if `pred` holds, else of `false_fn()`, nested alike.

    >>> paddle.static.nn.cond(paddle.to_tensor(True), lambda: 1, lambda: 2)
    1
    """
    structures = []

    def leaves_of(function):
        def call():
            leaves, structure = flatten(function() if function is not None else None)
            structures.append(structure)
            return leaves

        return call

    outputs = control.cond(pred, leaves_of(true_fn), leaves_of(false_fn))
    if any(s != structures[0] for s in structures):
        raise value_error("the branches of cond give results that are nested differently")
    return unflatten(structures[0], outputs)


def while_loop(cond, body, loop_vars, is_test=False, name=None) -> list:
    """`loop_vars`, sent through `body` while `cond` holds.

    >>> i = paddle.to_tensor(0)
    >>> [int(x) for x in paddle.static.nn.while_loop(lambda i: i < 5, lambda i: [i + 2], [i])]
    [6]
    """
    leaves, structure = flatten(list(loop_vars))

    def step(*leaves):
        return flatten(as_list(body(*unflatten(structure, list(leaves)))))[0]

    def test(*leaves):
        return cond(*unflatten(structure, list(leaves)))

    return unflatten(structure, control.while_loop(test, step, leaves))


def case(pred_fn_pairs, default=None, name=None):
    """The result of the first function whose condition holds; of the last one, or `default`.

    >>> no, yes = paddle.to_tensor(False), paddle.to_tensor(True)
    >>> paddle.static.nn.case([(no, lambda: 1), (yes, lambda: 2)], lambda: 3)
    2
    """
    if not isinstance(pred_fn_pairs, list | tuple) or not pred_fn_pairs:
        raise type_error("case without pairs", expected="[(condition, function), …]")
    (pred, function), *rest = pred_fn_pairs
    if not rest and default is None:
        return function()
    return cond(pred, function, (lambda: case(rest, default)) if rest else default)


def switch_case(branch_index, branch_fns, default=None, name=None):
    """The result of the function number `branch_index`; of the last one, or `default`.

    >>> paddle.static.nn.switch_case(paddle.to_tensor(1), [lambda: 5, lambda: 6])
    6
    """
    if isinstance(branch_fns, dict):
        pairs = list(branch_fns.items())
    else:
        pairs = [f if isinstance(f, list | tuple) else (k, f) for k, f in enumerate(branch_fns)]
    tests = [(logic.equal(branch_index, k), function) for k, function in pairs]
    return case(tests, default or max(pairs, key=lambda pair: pair[0])[1])
