"""The questions that `make_paddle_sharding_rules.py` asks: random calls of each operator.

`OPERATORS` maps a name in Paddle's table of rules to (a function that draws a call, how many calls
are drawn to ask forward, how many to ask backward). Letters stand for dimensions as the recorder's
docstring says; the sizes are drawn for the letters.
"""

import math
from dataclasses import dataclass, field

SIZES = [2, 3, 4, 6, 8, 12, 13, 16, *[24] * 4, *[48] * 4]


@dataclass
class Question:
    """One call: letters and shapes of inputs and outputs, and the attributes in their order."""

    letters: str
    sizes: dict
    attributes: list = field(default_factory=list)
    lists: str = ""
    list_result: bool = False

    @property
    def shapes(self) -> list[list[list[int]]]:
        return [
            [[self.sizes[letter] for letter in word] for word in side.split(",")]
            for side in self.letters.split("->")
        ]


def asked(chance, letters: str, attributes=(), lists="", list_result=False, **sizes) -> Question:
    for letter in letters:
        sizes.setdefault(letter, chance.choice(SIZES))
    return Question(letters, {**sizes, "1": 1}, list(attributes), lists, list_result)


def dimensions(chance, most=4, least=1) -> str:
    return "abcdefg"[: chance.randint(least, most)]


def whole(word: str, axes) -> str:
    """`word` with capitals at `axes`."""
    return "".join(x.upper() if d in axes else x for d, x in enumerate(word))


def without(word: str, axes) -> str:
    return "".join(x for d, x in enumerate(word) if d not in axes)


def some_axis(chance, word: str) -> tuple[int, int]:
    """(a dimension, the same counted from the front or from the back)."""
    axis = chance.randrange(len(word))
    return axis, axis - len(word) * chance.randint(0, 1)


# ---- elementwise -----------------------------------------------------------------------------


def unary(*attributes):
    def draw(chance):
        word = dimensions(chance)
        return asked(chance, f"{word}->{word}", attributes)

    return draw


def broadcast(count: int, *attributes):
    """`count` tensors of which some lack leading dimensions, or have size 1 in some."""

    def draw(chance):
        word = dimensions(chance, 4)
        words = [word] * count
        for k in range(count):
            if chance.random() < 0.5:
                kept = word[chance.choice([0, 0, 1]) :] or word
                words[k] = "".join("1" if chance.random() < 0.15 else x for x in kept)
        result = "".join(
            x if any(x in other for other in words) else "1" for x in word[-max(map(len, words)) :]
        )
        return asked(chance, f"{','.join(words)}->{result}", attributes)

    return draw


def alike(count: int, *attributes, lists=""):
    def draw(chance):
        word = dimensions(chance, 3)
        return asked(chance, f"{','.join([word] * count)}->{word}", attributes, lists)

    return draw


# ---- reductions, and what is whole along an axis -----------------------------------------------


def reduction(*more):
    def draw(chance):
        word = dimensions(chance)
        axes = sorted(chance.sample(range(len(word)), chance.randint(0, len(word))))
        keep = chance.random() < 0.5
        gone = axes or range(len(word))
        result = "".join("1" if d in gone else x for d, x in enumerate(word))
        signs = [axis - len(word) * chance.randint(0, 1) for axis in axes]
        return asked(
            chance, f"{word}->{result if keep else without(word, gone)}", [signs, keep, *more]
        )

    return draw


def all_of_it(attributes):
    def draw(chance):
        word = dimensions(chance)
        return asked(chance, f"{word}->", attributes(word))

    return draw


def along(attributes, results=1, front=False):
    """The axis stays as it is, and is whole: softmax, cumsum.

    `front`: no axis counted from the back, where Paddle's rule writes to memory that is not its own
    (cumsum), or answers inputs that do not fit its outputs (argsort).
    """

    def draw(chance):
        word = dimensions(chance)
        axis, sign = some_axis(chance, word)
        sign = axis if front else sign
        kept = whole(word, [axis])
        return asked(chance, f"{kept}->{','.join([kept] * results)}", attributes(sign))

    return draw


def arg(chance):
    word = dimensions(chance)
    axis, sign = some_axis(chance, word)
    keep, flatten = chance.random() < 0.5, chance.random() < 0.1
    gone = range(len(word)) if flatten else [axis]
    kept = "".join("1" if d in gone else x for d, x in enumerate(word))
    result = kept if keep else without(word, gone)
    return asked(chance, f"{whole(word, gone)}->{result}", [sign, keep, flatten])


def several_along(attributes):
    """Reductions over axes that Paddle wants whole."""

    def draw(chance):
        word = dimensions(chance)
        axes = sorted(chance.sample(range(len(word)), chance.randint(1, len(word))))
        keep = chance.random() < 0.5
        kept = "".join("1" if d in axes else x for d, x in enumerate(word))
        result = kept if keep else without(word, axes)
        return asked(chance, f"{whole(word, axes)}->{result}", attributes(axes, keep))

    return draw


def one_axis_norm(chance):
    word = dimensions(chance)
    axis, sign = some_axis(chance, word)
    keep = chance.random() < 0.5
    kept = whole(word, [axis]).replace(word[axis].upper(), "1") if keep else without(word, [axis])
    return asked(chance, f"{whole(word, [axis])}->{kept}", [2.0, sign, 1e-12, keep, False])


def topk(chance):
    word = dimensions(chance)
    axis, sign = some_axis(chance, word)
    result = word[:axis] + "K" + word[axis + 1 :]
    k = chance.choice([1, 2])
    return asked(chance, f"{whole(word, [axis])}->{result},{result}", [k, sign, True, True], K=k)


# ---- products ----------------------------------------------------------------------------------


def matmul(chance):
    batch = "abc"[: chance.choice([0, 0, 0, 1, 1, 2])]
    tx, ty = chance.random() < 0.5, chance.random() < 0.5
    x, y, out = batch + ("km" if tx else "mk"), batch + ("nk" if ty else "kn"), batch + "mn"
    kind = chance.random()
    if kind < 0.1:
        x, out, tx = "k", batch + "n", False
    elif kind < 0.2:
        y, out, ty = "k", batch + "m", False
    elif kind < 0.25:
        x, y, out, tx, ty = "k", "k", "", False, False
    elif batch and kind < 0.45:
        y = y[len(batch) :]
    elif batch and kind < 0.55:
        x = x[len(batch) :]
    elif batch and kind < 0.65:
        y = "1" + y[1:]
    return asked(chance, f"{x},{y}->{out}", [tx, ty])


def bmm(chance):
    return asked(chance, "bmk,bkn->bmn")


def linear(*attributes):
    def draw(chance):
        batch = "abc"[: chance.randint(1, 3)]
        return asked(chance, f"{batch}k,kn,n->{batch}n", attributes)

    return draw


def fused_linear(chance):
    flag = chance.random() < 0.5
    x, y = ("km" if flag else "mk"), ("nk" if chance.random() < 0.5 else "kn")
    return asked(chance, f"{x},{y},n->mn", [flag, y == "nk"])


def einsum(chance):
    equation = chance.choice(
        ["ij,jk->ik", "bij,bjk->bik", "ij,kj->ik", "ij,ij->i", "ij->ji", "ij->i", "bij,jk->bik"]
    )
    return asked(chance, equation, [equation], lists="all")


def convolution(channels_last=False, spatial=2, transposed=False, depthwise=False, attributes=()):
    def draw(chance):
        space, kernel, result = "HWD"[:spatial], "KLM"[:spatial], "XYZ"[:spatial]
        weight = "co" if transposed else "c1" if depthwise else "oc"
        out = "c" if depthwise else "o"
        given = dict.fromkeys(space, 8) | dict.fromkeys(kernel, 3)
        given |= dict.fromkeys(result, 10 if transposed else 6)
        return asked(chance, f"nc{space},{weight}{kernel}->n{out}{result}", attributes, **given)

    return draw


# ---- movements ---------------------------------------------------------------------------------


def transpose(chance):
    word = dimensions(chance)
    order = chance.sample(range(len(word)), len(word))
    return asked(chance, f"{word}->{''.join(word[d] for d in order)}", [order])


def reshape(chance):
    """Some neighbours become one dimension, or one becomes several: the first of them is cut."""
    merged, parts = chance.choice(["ab", "abc", "aBc", "aB"]), chance.random() < 0.5
    front, back = chance.choice(["", "x"]), chance.choice(["", "y"])
    many = front + merged[0] + merged[1:].upper() + back
    one = front + merged[0] + back
    question = asked(chance, f"{many}->{one}")
    question.attributes = [None]
    return Merged(question, merged[0], merged[1:].upper(), parts)


class Merged:
    """A question in which one letter has, on one side, the size of itself times some others."""

    def __init__(self, question: Question, letter: str, others: str, parts: bool):
        many, one = question.letters.split("->")
        sizes, product = question.sizes, math.prod(question.sizes[x] for x in letter + others)
        shapes = [[sizes[x] for x in many], [product if x == letter else sizes[x] for x in one]]
        self.letters = f"{one}->{many}" if parts else f"{many}->{one}"
        self.shapes = [[shape] for shape in (shapes[::-1] if parts else shapes)]
        self.attributes = [self.shapes[1][0]] if question.attributes == [None] else []
        self.lists, self.list_result = "", False


def flatten(chance):
    word = dimensions(chance)
    start = chance.randrange(len(word))
    stop = chance.randrange(start, len(word))
    many = word[: start + 1] + word[start + 1 : stop + 1].upper() + word[stop + 1 :]
    question = asked(chance, f"{many}->{word[: start + 1]}{word[stop + 1 :]}")
    merged = Merged(question, word[start], word[start + 1 : stop + 1].upper(), False)
    merged.attributes = [start, stop]
    return merged


def squeeze(chance):
    word = dimensions(chance)
    places = sorted(chance.sample(range(len(word)), chance.randint(1, len(word))))
    longer = "".join("1" + x if d in places else x for d, x in enumerate(word))
    ones = [d for d, x in enumerate(longer) if x == "1"]
    return asked(chance, f"{longer}->{word}", [ones])


def unsqueeze(chance):
    question = squeeze(chance)
    question.letters = "->".join(question.letters.split("->")[::-1])
    return question


def concat(chance):
    word = dimensions(chance)
    axis, sign = some_axis(chance, word)
    parts, total = "PQR"[: chance.randint(2, 3)], "T"
    words = [word[:axis] + x + word[axis + 1 :] for x in parts]
    result = word[:axis] + total + word[axis + 1 :]
    sizes = {x: chance.choice(SIZES) for x in parts}
    return asked(
        chance, f"{','.join(words)}->{result}", [sign], "all", T=sum(sizes.values()), **sizes
    )


def stack(chance):
    word, count = dimensions(chance, 3), chance.randint(2, 3)
    axis = chance.randint(0, len(word))
    result = word[:axis] + "N" + word[axis:]
    return asked(chance, f"{','.join([word] * count)}->{result}", [axis], "all", N=count)


def split(chance):
    word = dimensions(chance)
    axis, sign = some_axis(chance, word)
    parts = {x: chance.choice(SIZES) for x in "PQR"[: chance.randint(2, 3)]}
    words = [word[:axis] + x + word[axis + 1 :] for x in parts]
    return asked(
        chance,
        f"{whole(word, [axis])}->{','.join(words)}",
        [list(parts.values()), sign],
        list_result=True,
        **{word[axis].upper(): sum(parts.values())},
        **parts,
    )


def split_with_num(chance):
    word = dimensions(chance)
    axis, sign = some_axis(chance, word)
    part, count = chance.choice(SIZES), chance.randint(2, 4)
    result = word[:axis] + "P" + word[axis + 1 :]
    return asked(
        chance,
        f"{whole(word, [axis])}->{','.join([result] * count)}",
        [count, sign],
        list_result=True,
        **{word[axis].upper(): part * count, "P": part},
    )


def unbind(chance):
    word, count = dimensions(chance, 4, 2), chance.randint(2, 4)
    axis, sign = some_axis(chance, word)
    rest = without(word, [axis])
    return asked(
        chance,
        f"{whole(word, [axis])}->{','.join([rest] * count)}",
        [sign],
        list_result=True,
        **{word[axis].upper(): count},
    )


def cut(attributes):
    """Slices: the dimensions that are cut must be whole."""

    def draw(chance):
        word = dimensions(chance)
        axes = sorted(chance.sample(range(len(word)), chance.randint(1, len(word))))
        result = "".join("PQRS"[d] if d in axes else x for d, x in enumerate(word))
        sizes = {"PQRS"[d]: 1 + chance.randint(0, 1) for d in axes}
        lengths = [sizes["PQRS"[d]] for d in axes]
        return asked(chance, f"{whole(word, axes)}->{result}", attributes(axes, lengths), **sizes)

    return draw


def tile(chance):
    word = dimensions(chance, 3)
    repeats = [chance.choice([1, 1, 2, 3]) for _ in range(len(word) + chance.choice([0, 0, 1]))]
    new = "N" * (len(repeats) - len(word))
    counts = repeats[len(new) :]
    repeated = [d for d, count in enumerate(counts) if count > 1]
    question = asked(chance, whole(word, repeated) + "->")
    letters = "".join("PQR"[d] if d in repeated else x for d, x in enumerate(word))
    sizes = {"PQR"[d]: question.sizes[word[d].upper()] * counts[d] for d in repeated}
    question.letters += new + letters
    question.sizes.update(sizes, N=repeats[0])
    question.attributes = [repeats]
    return question


def expand_as(chance):
    word = dimensions(chance)
    short = "".join("1" if chance.random() < 0.4 else x for x in word[chance.choice([0, 0, 1]) :])
    short = short or word
    question = asked(chance, f"{short},{word}->{word}")
    question.attributes = [question.shapes[1][0]]
    return question


def pad(chance):
    word = dimensions(chance)
    padded = {d for d in range(len(word)) if chance.random() < 0.4}
    amounts = [1 if d in padded else 0 for d in range(len(word)) for _ in range(2)]
    question = asked(chance, whole(word, padded) + "->")
    sizes = {"PQRS"[d]: question.sizes[word[d].upper()] + 2 for d in padded}
    question.letters += "".join("PQRS"[d] if d in padded else x for d, x in enumerate(word))
    question.sizes.update(sizes)
    question.attributes = [amounts, 0]
    return question


def roll(chance):
    word = dimensions(chance)
    axes = sorted(chance.sample(range(len(word)), chance.randint(1, len(word))))
    kept = whole(word, axes)
    return asked(chance, f"{kept}->{kept}", [[1] * len(axes), axes])


def triangle(*attributes):
    def draw(chance):
        word = whole(dimensions(chance, 4, 2), [])
        kept = word[:-2] + word[-2:].upper()
        return asked(chance, f"{kept}->{kept}", attributes)

    return draw


# ---- by an index -------------------------------------------------------------------------------


def embedding(*attributes, weight_first=False):
    def draw(chance):
        ids = "abc"[: chance.randint(1, 3)]
        words = ["vh", ids] if weight_first else [ids, "vh"]
        return asked(chance, f"{','.join(words)}->{ids}h", attributes, v=chance.choice([12, 24]))

    return draw


def gather(chance):
    word = dimensions(chance)
    axis = chance.randrange(len(word))
    result = word[:axis] + "i" + word[axis + 1 :]
    return asked(chance, f"{whole(word, [axis])},i->{result}", [axis])


def gather_nd(chance):
    word = dimensions(chance)
    depth, ids = chance.randint(1, len(word)), "ij"[: chance.randint(1, 2)]
    kept = whole(word, range(depth))
    return asked(chance, f"{kept},{ids}N->{ids}{word[depth:]}", N=depth)


def scatter(chance):
    word = dimensions(chance)
    kept, rest = whole(word, [0]), word[1:]
    return asked(chance, f"{kept},I,I{rest}->{kept}", [chance.random() < 0.5])


def scatter_nd_add(chance):
    word = dimensions(chance)
    depth = chance.randint(1, len(word))
    kept = whole(word, range(depth))
    return asked(chance, f"{kept},IN,I{word[depth:]}->{kept}", N=depth)


def index_put(chance):
    word = dimensions(chance, 3)
    depth = chance.randint(1, len(word))
    kept = whole(word, range(depth))
    words = [kept, *["I"] * depth, "I" + word[depth:]]
    return asked(chance, f"{','.join(words)}->{kept}", [False], "middle")


def take_along(chance):
    word = dimensions(chance)
    axis = chance.randrange(len(word))
    result = word[:axis] + "I" + word[axis + 1 :]
    return asked(chance, f"{whole(word, [axis])},{result}->{result}", [axis])


def put_along(chance):
    word = dimensions(chance)
    axis = chance.randrange(len(word))
    kept, index = whole(word, [axis]), word[:axis] + "I" + word[axis + 1 :]
    return asked(chance, f"{kept},{index},{index}->{kept}", [axis, "assign", True])


def one_hot(chance):
    word = dimensions(chance, 3)
    return asked(chance, f"{word}->{word}C", [8], C=8)


# ---- layers ------------------------------------------------------------------------------------


def layer_norm(chance):
    word = dimensions(chance, 4, 2)
    begin = chance.randint(1, len(word) - 1)
    kept = whole(word, range(begin, len(word)))
    question = asked(chance, f"{kept},S,S->{kept},{word[:begin]},{word[:begin]}")
    question.sizes["S"] = math.prod(question.sizes[x] for x in kept[begin:])
    question.attributes = [1e-5, begin]
    return question


def rms_norm(chance):
    word = dimensions(chance, 4, 2)
    kept = whole(word, [len(word) - 1])
    return asked(chance, f"{kept},{kept[-1]}->{kept},{word[:-1]}", [1e-6])


def image_norm(letters: str, *attributes):
    def draw(chance):
        return asked(chance, letters, attributes, H=4, W=4)

    return draw


def cross_entropy(chance):
    word = dimensions(chance, 3, 2)
    axis, sign = len(word) - 1, chance.choice([-1, len(word) - 1])
    soft, normalised = chance.random() < 0.3, chance.random() < 0.8
    kept = whole(word, [axis]) if soft or not normalised else word
    label = kept if soft else word[:axis] + "1"
    attributes = [soft, normalised, True, -100, sign]
    return asked(chance, f"{kept},{label}->{kept},{word[:axis]}1", attributes)


def parallel_cross_entropy(chance):
    word = dimensions(chance, 3, 2)
    rows = word[:-1]
    return asked(chance, f"{word},{rows}1->{word},{rows}1", [-100, 0, 2])


def attention(chance):
    return asked(
        chance,
        "bqhD,bKhD,bKhV,,->bqhV,bhqK,bhq,",
        [0.0, chance.random() < 0.5, False, False],
        D=64,
        V=64,
    )


def rope(chance):
    """Queries, keys and values share their letters; sines and cosines lack batch and heads."""
    attributes = [True, False, 10000.0]
    return asked(chance, "bshD,bshD,bshD,1s1D,1s1D,bs->bshD,bshD,bshD", attributes, D=64)


def boxes(chance):
    return asked(chance, "NCHW,MB,N->MCXY", [4, 4, 1.0, 2, True], B=4, X=4, Y=4)


def unknown_count(chance):
    word = dimensions(chance).upper()
    return asked(chance, f"{word}->QR", R=len(word))


def smooth(chance):
    word = dimensions(chance, 3)
    return asked(chance, f"{word},{word[-1]}->{word}", [0.1])


def glu(chance):
    word = dimensions(chance, 3)
    return asked(chance, f"{word},{word}->{word}")


CONV3D = [[1] * 3, [0] * 3, "EXPLICIT", 1, [1] * 3, "NCDHW"]
CONV_TRANSPOSE = [[1, 1], [0, 0], [], [], "EXPLICIT", 1, [1, 1], "NCHW"]
DEPTHWISE = [[1, 1], [0, 0], "EXPLICIT", 1, [1, 1], "NCHW"]

UNARY = """
    abs acos acosh asin asinh assign atan atanh bernoulli bitwise_not ceil celu clip conj cos cosh
    digamma dropout elementwise_unary elu erf erfinv exp expm1 fill floor hardshrink hardsigmoid
    hardswish hardtanh leaky_relu lgamma log log10 log1p log2 logical_not logit logsigmoid mish
    poisson pow reciprocal relu6 round rsqrt selu sigmoid sign sin sinh softplus softshrink
    softsign sqrt square stanh swish tan tanh_shrink thresholded_relu trunc
"""
BINARY = """
    bitwise_and bitwise_or bitwise_xor divide elementwise_add elementwise_binary elementwise_div
    elementwise_mul elementwise_pow floor_divide fmax fmin greater_than heaviside less_than
    logical_and logical_or logical_xor maximum minimum not_equal remainder subtract trunc_divide
"""
REDUCTIONS = "all amax amin any frobenius_norm max min prod reduce_max reduce_sum sum"

OPERATORS = {
    **{name: (unary(), 4, 1) for name in UNARY.split()},
    **{name: (unary(), 20, 4) for name in ("relu", "scale", "silu", "tanh")},
    "gelu": (unary(False), 20, 4),
    **{name: (broadcast(2), 10, 3) for name in BINARY.split()},
    **{name: (broadcast(2), 200, 30) for name in ("add", "multiply")},
    "where": (broadcast(3), 120, 20),
    "add_n": (alike(3, lists="all"), 40, 0),
    "swiglu": (glu, 30, 8),
    "fused_dropout_add": (alike(2), 20, 0),
    **{name: (reduction(), 30, 6) for name in REDUCTIONS.split()},
    "reduce_sum": (reduction(), 160, 20),
    "reduce_base": (reduction(1), 20, 0),
    "squared_l2_norm": (all_of_it(lambda word: [[*range(len(word))], False]), 15, 0),
    "mean_all": (all_of_it(lambda word: []), 30, 5),
    "logsumexp": (several_along(lambda axes, keep: [axes, keep, False]), 60, 10),
    "p_norm": (one_axis_norm, 60, 10),
    **{name: (along(lambda axis: [axis]), 120, 20) for name in ("softmax", "log_softmax")},
    "cumsum": (along(lambda axis: [axis, False, False, False], front=True), 60, 10),
    **{
        name: (along(lambda axis: [axis, "paddle.int64"], 2), 30, 5)
        for name in ("cummax", "cummin")
    },
    **dict.fromkeys(("argmax", "argmin"), (arg, 60, 10)),
    "argsort": (along(lambda axis: [axis, False, False], 2, front=True), 40, 5),
    "topk": (topk, 60, 10),
    "matmul": (matmul, 700, 60),
    "matmul_v2": (matmul, 20, 5),
    "bmm": (bmm, 60, 5),
    "linear_v2": (linear(False), 60, 0),
    "fused_gemm_epilogue": (fused_linear, 60, 0),
    "einsum": (einsum, 80, 0),
    "conv2d": (convolution(), 80, 10),
    "conv3d": (convolution(spatial=3, attributes=CONV3D), 30, 5),
    "conv2d_transpose": (convolution(transposed=True, attributes=CONV_TRANSPOSE), 30, 5),
    "depthwise_conv2d": (convolution(depthwise=True, attributes=DEPTHWISE), 30, 5),
    **dict.fromkeys(("transpose", "transpose2"), (transpose, 80, 15)),
    **dict.fromkeys(("reshape", "reshape2"), (reshape, 120, 20)),
    "flatten": (flatten, 60, 10),
    "squeeze": (squeeze, 60, 10),
    **dict.fromkeys(("unsqueeze", "unsqueeze2"), (unsqueeze, 50, 10)),
    "concat": (concat, 120, 15),
    "stack": (stack, 80, 10),
    "split": (split, 80, 10),
    "split_with_num": (split_with_num, 60, 10),
    "unbind": (unbind, 50, 5),
    "slice": (cut(lambda axes, n: [axes, [0] * len(axes), n, [1] * len(axes), []]), 80, 10),
    "strided_slice": (cut(lambda axes, n: [axes, [0] * len(n), n, [1] * len(n)]), 40, 0),
    "tile": (tile, 80, 10),
    "expand_as": (expand_as, 50, 10),
    "expand_as_v2": (expand_as, 10, 3),
    "pad": (pad, 50, 0),
    "roll": (roll, 40, 5),
    "triu": (triangle(0), 50, 10),
    "tril_triu": (triangle(0, True), 50, 10),
    "embedding": (embedding(-1, False), 120, 20),
    "lookup_table_v2": (embedding(-1, False), 20, 5),
    "c_embedding": (embedding(0, 24, weight_first=True), 60, 0),
    "gather": (gather, 80, 10),
    "gather_nd": (gather_nd, 60, 10),
    "index_select": (gather, 50, 10),
    "take_along_axis": (take_along, 50, 5),
    "put_along_axis": (put_along, 40, 0),
    "index_put": (index_put, 40, 0),
    "scatter": (scatter, 60, 5),
    "scatter_nd_add": (scatter_nd_add, 40, 5),
    "one_hot": (one_hot, 50, 10),
    "layer_norm": (layer_norm, 150, 20),
    "fused_rms_norm": (rms_norm, 80, 10),
    "batch_norm": (image_norm("ncHW,c,c,c,c->ncHW,c,c,c,c,"), 60, 0),
    "group_norm": (image_norm("nCHW,C,C->nCHW,nG,nG", 1e-5, 2, "NCHW"), 40, 0),
    "instance_norm": (image_norm("ncHW,c,c->ncHW,nc,nc", 1e-5), 40, 0),
    **dict.fromkeys(
        ("cross_entropy_with_softmax", "softmax_with_cross_entropy"), (cross_entropy, 100, 10)
    ),
    "c_softmax_with_cross_entropy": (parallel_cross_entropy, 50, 0),
    "flash_attention": (attention, 100, 5),
    "fused_rotary_position_embedding": (rope, 60, 0),
    "label_smooth": (smooth, 30, 0),
    "roi_align": (boxes, 10, 0),
    "nonzero": (unknown_count, 10, 0),
}
