"""`auto_cast`: a block in which operators compute in few bits where that is safe."""

from contextlib import contextmanager
from functools import cache

from ..core.casting import CastPolicy, casting
from ..core.prelude import dt, require_one_of, value_error
from .lists import DTYPES, LEVELS, black_list, names, white_list


@contextmanager
def auto_cast(
    enable=True, custom_white_list=None, custom_black_list=None, level="O1", dtype="float16",
    use_promote=True,
):  # fmt: skip
    """A block of mixed precision: products and convolutions compute in `dtype`.

    Level "O1": sums, norms, losses and steep functions compute in float32, everything else in the
    widest dtype that it is given. "O2", for weights that `decorate` cast: only table look-ups and
    resizing stay in float32; without `use_promote` all that is not listed computes in `dtype`.
    "OD": products in `dtype`, all else in float32. "O0": nothing is cast. The custom lists (names
    of operators, Paddle's or ours) come first. Backward computes as forward did: leave the block
    before. Source: Micikevicius et al., "Mixed Precision Training", 2018.

    >>> x = paddle.ones([2, 2])
    >>> with paddle.amp.auto_cast(dtype="bfloat16"):
    ...     (x @ x).dtype, (x @ x).sum().dtype
    (paddle.bfloat16, paddle.float32)
    """
    level, dtype = level.upper(), dt.public(dtype).name
    require_one_of("auto_cast", ("O0", *LEVELS), level=level)
    if not enable or level == "O0":
        policy = None
    else:
        require_one_of("auto_cast", DTYPES, dtype=dtype)
        custom = [frozenset(own or ()) for own in (custom_white_list, custom_black_list)]
        policy = policy_of(level, dtype, *custom, bool(use_promote) or level != "O2")
    with casting(policy):
        yield


amp_guard = auto_cast


@cache
def policy_of(level: str, dtype: str, more_white, more_black, promote: bool) -> CastPolicy:
    """The policy of a block. It is one object for equal arguments, so that a program serves again.

    Raises ValueError if a name stands in both custom lists.
    """
    if both := more_white & more_black:
        raise value_error(
            f"auto_cast was given {min(both)!r} in custom_white_list and in custom_black_list",
            "each name in one of them",
        )
    lists = [("white", more_white), ("black", more_black)]
    lists += [("white", white_list()[dtype][level]), ("black", black_list()[dtype][level])]
    label = f"{level} in {dtype}{'' if promote else ' without promotion'}"
    label += "".join(f" {kind} {name}" for kind, own in lists[:2] for name in sorted(own))
    rest = "black" if level == "OD" else "other"
    return CastPolicy(label, dt.resolve(dtype), lists, names, promote=promote, rest=rest)
