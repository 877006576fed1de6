"""Where Paddle takes a number of a run as a size, an index or a loop's length, programs do too.

Each row is a function of a tensor whose first size is open and of a whole number in a tensor.
"""

import os

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.jit.dy2static.utils import Dygraph2StaticException
from minipaddle.static import InputSpec

ROWS, REFUSED = {}, {}


def row(function):
    ROWS[function.__name__] = function
    return function


def refused(pattern):
    def register(function):
        REFUSED[function.__name__] = function, pattern
        return function

    return register


# Sizes of operators
@row
def topk(x, n):
    k = int(n.sum())
    return paddle.topk(x[:, 0], k)


@row
def topk_of_a_tensor(x, n):
    return paddle.topk(x[:, 0], k=n)


@row
def one_hot(x, n):
    return F.one_hot(paddle.arange(2), num_classes=int(n) + 2)


@row
def one_hot_of_a_tensor(x, n):
    return F.one_hot(paddle.to_tensor([0, 1]), num_classes=n + 2)


@row
def split(x, n):
    return paddle.split(x, [int(n), -1])


@row
def split_of_tensors(x, n):
    return paddle.split(x, [n, x.shape[0] - n])


@row
def split_method(x, n):
    a, b = x.split([int(n), x.shape[0] - int(n)], axis=0)
    return a * 2, b.sum()


@row
def chunk(x, n):
    return paddle.chunk(x, 2, axis=1)


@row
def expand(x, n):
    return x[:1].expand([int(n), 4])


@row
def expand_of_a_tensor(x, n):
    return paddle.expand(x[:1], [n, 4])


@row
def expand_to_open(x, n):
    return x[:1].expand([x.shape[0], -1]), x[:1].expand_as(x), paddle.broadcast_to(x[0], x.shape)


@row
def tile(x, n):
    return paddle.tile(x, [int(n), 1])


@row
def tile_of_a_tensor(x, n):
    return x.tile([n, 2])


@row
def repeat_interleave(x, n):
    return paddle.repeat_interleave(x, int(n), axis=0)


@row
def repeat_interleave_each(x, n):
    return paddle.repeat_interleave(x, paddle.arange(x.shape[0]) % n, axis=0)


@row
def reshape(x, n):
    k = int(n)
    return paddle.arange(k * 3).reshape([k, 3]), x.reshape([-1, x.shape[0]])


@row
def reshape_of_a_tensor(x, n):
    return paddle.reshape(paddle.arange(n * 2), [n, -1]), paddle.reshape(x, [x.shape[0], 2, 2])


@row
def full(x, n):
    return paddle.full([int(n), 2], 3.0), paddle.zeros([n, 2]), paddle.ones([int(n)])


@row
def full_of_a_shape(x, n):
    return paddle.full(shape=paddle.shape(x), fill_value=2.0), paddle.zeros(x.shape)


@row
def linspace(x, n):
    return paddle.linspace(0, 1, int(n)), paddle.linspace(0.0, n.astype("float32"), 5)


@row
def linspace_of_a_tensor(x, n):
    return paddle.linspace(0, 1, n)


@row
def eye(x, n):
    return paddle.eye(int(n)), paddle.eye(x.shape[0], int(n))


@row
def eye_of_a_tensor(x, n):
    return paddle.eye(n)


@row
def triangle(x, n):
    return paddle.tril(x, diagonal=int(n) - 2), paddle.triu(x, int(n) - 2)


@row
def triangle_of_a_tensor(x, n):
    return paddle.tril(x, n - 2)


@row
def diagonal(x, n):
    return paddle.diag(x[:, 0]), paddle.diagonal(x, int(n) - 2)


@row
def roll(x, n):
    return paddle.roll(x, int(n), axis=0), x.roll(shifts=int(n))


@row
def roll_of_a_tensor(x, n):
    return paddle.roll(x, n, axis=0)


@row
def slice_of(x, n):
    return paddle.slice(x, axes=[0], starts=[int(n) - 1], ends=[x.shape[0]])


@row
def slice_of_tensors(x, n):
    return paddle.slice(x, [0, 1], [n - 1, 0], [n + 1, 2])


@row
def strided_slice(x, n):
    return paddle.strided_slice(x, [0], [0], [int(n)], [1])


@row
def pad(x, n):
    return F.pad(x, [0, 0, 0, int(n)]), F.pad(x, [1, int(n)])


@row
def pad_to_a_multiple(x, n):
    k = (8 - x.shape[0] % 8) % 8
    return F.pad(x.reshape([1, 1, -1, 4]), [0, 0, 0, k])


@row
def pad_of_a_tensor(x, n):
    return F.pad(x.reshape([1, 1, -1, 4]), [0, 0, n, 0])


@row
def interpolate(x, n):
    return F.interpolate(x.reshape([1, 1, -1, 4]), size=[int(n) * 2, 8])


@row
def interpolate_bilinear(x, n):
    k = int(n)
    return F.interpolate(x.reshape([1, 1, -1, 4]), size=[k, k], mode="bilinear")


@row
def interpolate_to_another(x, n):
    y = x.reshape([1, 1, -1, 4])
    return F.interpolate(y[:, :, :1], size=y.shape[2:], mode="bilinear", align_corners=True)


@row
def interpolate_by_a_factor(x, n):
    return F.interpolate(x.reshape([1, 1, -1, 4]), scale_factor=2)


@refused("a tensor has no value yet")
def interpolate_by_factor_of_a_run(x, n):
    return F.interpolate(x.reshape([1, 1, -1, 4]), scale_factor=int(n))


@row
def sequence_mask(x, n):
    lengths = paddle.stack([n, n + 2])
    return F.sequence_mask(lengths, maxlen=int(lengths.max()))


@row
def sequence_mask_of_a_tensor(x, n):
    lengths = paddle.stack([n, n + 2])
    return F.sequence_mask(lengths, maxlen=lengths.max())


@row
def sequence_mask_of_the_longest(x, n):
    return F.sequence_mask(paddle.stack([n, n + 2]))


@row
def sequence_mask_of_an_open_size(x, n):
    return F.sequence_mask(paddle.stack([n, n + 2]), maxlen=x.shape[0], dtype="float32")


@row
def randperm(x, n):
    return paddle.randperm(int(n)).sort(), paddle.randperm(x.shape[0]).sort()


@row
def randperm_of_a_tensor(x, n):
    return paddle.randperm(n).sort()


@row
def randint(x, n):
    k = int(n)
    return paddle.randint(0, 1, [k, 2]), paddle.randint(k, k + 1, [3]), paddle.rand([k, 2]) * 0


@row
def arange(x, n):
    return paddle.arange(int(n)), paddle.arange(1, n + 1), paddle.arange(0, x.shape[0], 2)


@row
def unfold_into_windows(x, n):
    return x[:, 0].unfold(0, 2, 1)


@row
def meshgrid(x, n):
    return paddle.meshgrid(paddle.arange(int(n)), paddle.arange(x.shape[0]))


# Indices
@row
def prefix(x, n):
    k = int(n)
    return x[:k], x[: x.shape[0] - k], x[:n], x[-k:], x[k:]


@row
def element(x, n):
    return x[int(n) - 1], x[n - 1], x[-int(n)], x[n - 1, 2], x[int(n) - 1, 1:3]


@row
def window(x, n):
    i = int(n) - 1
    j = i + 2
    return x[i:j], x[i:j, 1], x[n - 1 : n + 1], x[i:j:2]


@row
def element_of_an_argmax(x, n):
    i = int(paddle.argmax(x[:, 0]))
    return x[i], x[: i + 1]


@row
def by_item(x, n):
    k = n.item()
    return x[:k], x[k - 1]


@row
def by_numpy(x, n):
    k = int(n.numpy())
    return x[:k], paddle.zeros([k])


@row
def gather(x, n):
    return paddle.gather(x, n - 1), x.gather(paddle.arange(int(n))), paddle.index_select(x, n[None])


@row
def written(x, n):
    y = x * 1
    y[: int(n)] = 0
    y[int(n) - 1] = 7
    y[n - 1, 1] = 5
    return y


@row
def masked(x, n):
    y = x[x[:, 0] > 0.5]
    return paddle.zeros([y.shape[0], 2]), y[: y.shape[0] // 2]


@row
def nonzero(x, n):
    at = paddle.nonzero(x[:, 0] > 0.5)
    return at, paddle.arange(at.shape[0])


# Lengths of loops
@row
def loop(x, n):
    total = paddle.zeros([4])
    for i in range(int(n)):
        total = total + x[i] * i
    return total


@row
def loop_of_a_tensor(x, n):
    total = paddle.zeros([4])
    for i in range(n):
        total = total * 0.5 + x[i]
    return total


@row
def loop_with_a_list(x, n):
    out = []
    for t in range(int(n)):
        out.append(x[t] * t)
    return paddle.stack(out)


@row
def loop_over_rows(x, n):
    out, h = [], paddle.zeros([4])
    for line in x:
        h = h * 0.5 + line
        out.append(h)
    return paddle.stack(out), paddle.concat(out)


@row
def backwards(x, n):
    out = []
    for t in range(x.shape[0] - 1, -1, -1):
        out.append(x[t] * t)
    return paddle.stack(out[::-1]), paddle.stack(out)


@row
def comprehension(x, n):
    return paddle.stack([x[i] * 2 for i in range(int(n))])


@row
def comprehension_over_a_size(x, n):
    return paddle.stack([x[i] * i for i in range(x.shape[0])])


@row
def comprehension_over_rows(x, n):
    return paddle.stack([line.sum() for line in x])


@refused("a tensor has no value yet")
def comprehension_with_a_condition(x, n):
    return paddle.stack([x[i] for i in range(int(n)) if i % 2 == 0])


@row
def comprehension_over_pairs(x, n):
    return paddle.stack([a * b for a, b in zip(x, x * 2)])


@row
def comprehension_that_counts(x, n):
    return paddle.concat([line * i for i, line in enumerate(x)])


@row
def generator(x, n):
    return sum(x[i].sum() for i in range(int(n)))


@row
def zipped(x, n):
    total = paddle.zeros([4])
    for a, b in zip(x, x[: int(n)]):
        total = total + a * b
    return total


@row
def enumerated(x, n):
    total = paddle.zeros([4])
    for i, line in enumerate(x):
        total = total + line * i
    return total


@row
def enumerated_from(x, n):
    total = paddle.zeros([4])
    for i, line in enumerate(x, 1):
        if i > n:
            break
        total = total + line * i
    return total


@row
def list_of_numbers(x, n):
    return paddle.stack([x[0]] * int(n))


@row
def list_of_a_number(x, n):
    filled = [0.5] * x.shape[0]
    filled[int(n) - 1] = 2.0
    return paddle.to_tensor(filled), paddle.to_tensor([1, 2] * int(n)), len([0] * int(n))


@refused("not all alike, times a number that only a run knows")
def list_of_nothing(x, n):
    out = [None] * int(n)
    for i in range(int(n)):
        out[i] = x[i]
    return paddle.stack(out)


@row
def numbers_of_a_list(x, n):
    counts = [i * 2 for i in range(int(n))]
    halves = [i * 0.5 for i in range(int(n))]
    total = paddle.zeros([1], "int64")
    for k in counts:
        total = total + k
    return x * counts[1], paddle.to_tensor(halves), total, x / sum(counts), x * max(halves)


@row
def largest_of_a_list(x, n):
    sums = [x[i].sum() for i in range(int(n))]
    return max(sums), min(sums), sum(sums), paddle.stack(sums[1:])


@row
def quantified(x, n):
    if any(x[i].sum() > 3 for i in range(int(n))) and all(x[i, 0] < 2 for i in range(int(n))):
        x = x * 2
    return x


@refused(r"sorted\(\) of a list that grew")
def sorted_list(x, n):
    return paddle.stack(sorted([x[i].sum() for i in range(int(n))]))


@refused("grows by other items in another iteration")
def nested_comprehensions(x, n):
    k = int(n)
    return paddle.stack([paddle.stack([x[i] * j for j in range(k)]) for i in range(k)])


@row
def comprehension_of_a_list(x, n):
    out = [x[i] for i in range(int(n))]
    return [each * 2 for each in out], [i * 3 for i in range(int(n))]


@row
def numbers_behind_others(x, n):
    out = [1]
    for i in range(int(n)):
        out.append(i * 2)
    return out, paddle.to_tensor([*out, 7])


@refused("a set or a dict of a list that grew")
def set_of_a_list(x, n):
    out = [x[i] for i in range(int(n))]
    return {each * 2 for each in out}


@row
def tensor_of_a_list(x, n):
    return paddle.to_tensor([i * 2 for i in range(int(n))])


@row
def length(x, n):
    out = []
    for i in range(int(n)):
        out.append(x[i])
    return paddle.full([len(out)], len(out)), paddle.to_tensor(len(x))


@refused("grows by other items in another iteration")
def length_regulator(x, n):
    repeats = paddle.arange(x.shape[0]) % n + 1
    out = []
    for i in range(x.shape[0]):
        out.append(x[i : i + 1].expand([int(repeats[i]), 4]))
    return paddle.concat(out)


@row
def unbound(x, n):
    return paddle.stack([a + 1 for a in paddle.unbind(x, axis=1)])


@row
def padded_batch(x, n):
    lengths = paddle.stack([n, n + 1])
    longest = int(lengths.max())
    rows = [F.pad(x[: int(k), 0], [0, longest - int(k)]) for k in lengths]
    return paddle.stack(rows)


@row
def greedy(x, n):
    tokens = paddle.zeros([1], "int64")
    for i in range(int(n)):
        tokens = paddle.concat([tokens, (tokens.sum() + i).reshape([1]) % 3])
    return tokens


def draw(rows):
    return np.random.default_rng(rows).uniform(size=(rows, 4)).astype("float32")


CALLS = [(paddle.to_tensor(draw(rows)), paddle.to_tensor(n)) for rows, n in ((5, 2), (7, 4))]
SPECS = [InputSpec([None, 4], "float32"), InputSpec([], "int64")]


def arrays(value):
    if isinstance(value, (list, tuple)):
        return [a for part in value for a in arrays(part)]
    return [np.asarray(value.numpy() if isinstance(value, paddle.Tensor) else value)]


def agree(execution, function):
    for x, n in CALLS:
        expected, found = arrays(function(x, n)), arrays(execution(x, n))
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ROWS)
def test_sizes_open_in_the_specs(name, tmp_path):
    function, path = ROWS[name], os.path.join(tmp_path, "net")
    agree(paddle.jit.to_static(function, input_spec=SPECS), function)
    paddle.jit.save(function, path, input_spec=SPECS)
    agree(paddle.jit.load(path), function)


@pytest.mark.parametrize("name", ROWS)
def test_sizes_of_each_call(name):
    agree(paddle.jit.to_static(ROWS[name]), ROWS[name])


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_what_is_missing(name):
    function, pattern = REFUSED[name]
    with pytest.raises((Dygraph2StaticException, TypeError, ValueError), match=pattern):
        agree(paddle.jit.to_static(function, input_spec=SPECS), function)


def wrong(function, x, n):
    with pytest.raises(ValueError, match=r"the program assumes|a size of -1|k=9 elements"):
        paddle.jit.to_static(function)(x, paddle.to_tensor(n))


def test_what_sizes_must_be_is_checked_in_each_run():
    x = CALLS[0][0]
    wrong(topk, x, 9)
    wrong(split, x, 9)
    wrong(triangle_of_a_tensor, x, -1)
    wrong(lambda x, n: x[: x.shape[0] - n], x, 9)
    wrong(lambda x, n: F.pad(x, [0, 4 - int(n)]), x, 9)


def squares_of_states(x, n):
    out, h = [], paddle.zeros([4])
    for t in range(int(n)):
        h = paddle.tanh(h * 0.5 + x[t] * x[t])
        out.append(h)
    return paddle.stack(out)


def squares_of_rows(x, n):
    return paddle.concat([line * line for line in x])


def list_of_squares(x, n):
    return [x[i] * x[i] * i for i in range(int(n))]


def gradients(execution, x, n, of_function):
    x = paddle.to_tensor(x.numpy(), stop_gradient=False)
    y = execution(x, n)
    y = paddle.stack(y) if isinstance(y, list) else y
    if of_function:
        (g,) = paddle.grad(y.sum(), x, create_graph=True)
        (g * g).sum().backward()
    else:
        (y * y).sum().backward()
    return x.grad.numpy()


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("function", [squares_of_states, squares_of_rows, list_of_squares])
def test_gradients_pass_through_a_list_that_grew(function, again):
    execution = paddle.jit.to_static(function)
    for x, n in CALLS:
        expected = gradients(function, x, n, again)
        np.testing.assert_allclose(
            gradients(execution, x, n, again), expected, rtol=1e-4, atol=1e-6
        )


def grown(x) -> list:
    items = []
    for row in x:
        items += [row, row * 2]
    return items


def asked_in_a_comprehension(x):
    for k in range(len([row * 2 for row in x]) % 4):
        x = x + k
    return x


def asked_in_a_condition(x):
    return x * 2 if len(grown(x)) % 4 > 0 else x


def asked_of_a_difference(x):
    for k in range(len(grown(x)) - 6):
        x = x + k
    return x


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize(
    "function", [asked_in_a_comprehension, asked_in_a_condition, asked_of_a_difference]
)
def test_a_list_grows_by_as_many_items_as_a_loop_without_a_break_has(function, backend):
    """Its length is that size, not one of its own: a call with another answer is traced anew."""
    spec = paddle.static.InputSpec([None], "float32", "x")
    static = paddle.jit.to_static(function, input_spec=[spec], backend=backend)
    for n in (4, 3, 5, 8, 2):
        x = paddle.arange(n, dtype="float32")
        assert static(x).tolist() == function(x).tolist()
