"""The steps that random graphs are made of: each applies some operators to values of the pool."""

from __future__ import annotations

from functools import partial

import minipaddle as paddle
import minipaddle.nn.functional as F
from tests.executors.steps_layers import Layers

STEPS = {
    "unary": 6, "binary": 8, "chosen": 2, "fold": 8, "along": 4, "arrange": 12, "join": 4,
    "times": 5, "image": 3, "look_up": 4, "scatter": 3, "lottery": 2, "rows": 4, "write": 4,
    "branch": 2, "rounds": 1.5, "by_case": 8, "convert": 2, "attend": 2, "unroll": 1.5, "apart": 2,
    "normed": 1.5, "lines": 6, "decode": 1.5, "recur": 1, "align": 0.7,
}  # fmt: skip


def swarm(random) -> dict[str, float]:
    """The steps of one graph, and how likely they are: often only a few, so that these meet often.
    Source: Groce and others, Swarm Testing (2012).
    """
    if random.random() < 0.4:
        return STEPS
    few = random.sample([name for name in STEPS if name != "branch"], random.randint(2, 6))
    steps = {name: random.choice((1, 2, 4)) for name in few}
    if random.random() < 0.3:  # seldom enough that branches in branches come to an end
        steps["branch"] = 0.15 * sum(steps.values())
    return steps


class Steps(Layers):
    """Needs `random`, `steps`, `pool`, `sizes`, `parameters` and `states`."""

    def step(self) -> list:
        name = self.random.choices([*self.steps], [*self.steps.values()])[0]
        return getattr(self, name)()

    # ---- products ----------------------------------------------------------------------------

    def times(self):
        """A product, and what may be computed with its rows while they are in the cache."""
        x, random = self.floating(), self.random
        if x.ndim < 2:
            x = self.fitted(x, (random.choice(self.sizes), random.choice(self.sizes)))
        k, n = x.shape[-1], random.choice((1, 2, 5, 8, 17, 40, 200))
        shape = (n, k) if (turned := random.random() < 0.4) else (k, n)
        if random.random() < 0.25:
            shape = (*(m if random.random() < 0.7 else 1 for m in x.shape[:-2]), *shape)
        w = self.fitted(self.floating(), shape).astype(x.dtype)
        y = paddle.matmul(x, w, transpose_y=turned)
        options = [
            lambda y: y + self.fitted(self.floating().astype(y.dtype), y.shape[-1:]),
            F.gelu, F.relu, F.softmax, lambda y: y + self.partner(y), lambda y: y.sum(-1),
            lambda y: F.layer_norm(y, y.shape[-1:]), lambda y: y * 0.5,
            lambda y: self.reshaped(y)[0], lambda y: self.fitted(y, y.shape[::-1]),
            lambda y: y.transpose([*range(y.ndim - 2), y.ndim - 1, y.ndim - 2]),
            lambda y: y.max(-1, keepdim=True), lambda y: y.mean(0), lambda y: self.to_device(y)[0],
        ]  # fmt: skip
        found = [y]
        for _ in range(random.randint(0, 4)):
            found.append(random.choice(options)(found[-1]))
        return found if random.random() < 0.5 else found[-1:]

    def image(self):
        x, random = self.floating(), self.random
        n, c, h, w = random.choice((1, 2)), random.choice((1, 2, 4, 6)), 5, random.choice((4, 7))
        x = self.fitted(x, (n, c, h, w))
        kind = random.randrange(6)
        if kind < 3:
            groups = random.choice((1, 1, 2 if c % 2 == 0 else 1, c))
            outs = groups * random.choice((1, 2, 3))
            size = random.choice((1, 2, 3, 3))
            weight = self.fitted(self.floating(), (outs, c // groups, size, size)).astype(x.dtype)
            bias = self.fitted(self.floating(), (outs,)).astype(x.dtype)
            y = F.conv2d(
                x, weight, bias if random.random() < 0.6 else None, random.choice((1, 1, 2)),
                random.choice((0, 1, 1, "SAME")), random.choice((1, 1, 2)), groups,
            )  # fmt: skip
            options = [
                F.relu, lambda y: y + self.partner(y), lambda y: y.mean([2, 3]), lambda y: y,
                lambda y: F.relu(self.to_device(y)[0]), lambda y: self.reshaped(y)[0] * 0.5,
            ]  # fmt: skip
            return [random.choice(options)(y)]
        if kind == 3:
            return [F.max_pool2d(x, 2, random.choice((1, 2)), random.choice((0, 1)))]
        if kind == 4:
            return [F.avg_pool2d(x, random.choice((2, 3)), random.choice((1, 2)), 1)]
        weight = self.fitted(self.floating(), (c, 2, 3, 3)).astype(x.dtype)
        return [F.conv2d_transpose(x, weight, stride=random.choice((1, 2)))]

    # ---- indices -----------------------------------------------------------------------------

    def wild(self, n: int) -> tuple[int, int]:
        """The bounds of indices into n places; now and then one may be wrong."""
        return (0, n + 1) if self.random.random() < 0.04 else (0, n)

    def look_up(self):
        x, random = self.any(), self.random
        if not x.ndim:
            x = self.fitted(x, (3, 2))
        n = x.shape[0]
        kind = random.randrange(6)
        if kind == 0:
            return [x[self.whole(*self.wild(n))]]
        if kind == 1:
            index = self.whole(*self.wild(n), (random.choice(self.sizes),))
            return [paddle.gather(x, index), paddle.index_select(x, index)]
        if kind == 2:
            index = self.whole(0, x.shape[-1], (*x.shape[:-1], random.choice((1, 2, 5))))
            return [paddle.take_along_axis(x, index, -1)]
        if kind == 3:
            tables = [w for w in self.parameters if w.ndim == 2 and w.shape[0]]
            table = random.choice([self.fitted(x, (n, 4)), *tables])
            index = self.whole(*self.wild(table.shape[0]))
            padding = random.choice((None, None, 0, -1))
            return [F.embedding(index, table, padding, sparse=random.random() < 0.6)]
        if kind == 4:
            index = self.whole(*self.wild(n), (random.choice((1, 4)), 1))
            return [paddle.gather_nd(x, index)]
        return [F.one_hot(self.whole(0, 5), 5), x[-1], x[self.whole(0, n, ())]]

    def scatter(self):
        x, random = self.floating(), self.random
        if not x.ndim:
            x = self.fitted(x, (4,))
        n, count = x.shape[0], random.choice((1, 3, 6))
        index = self.whole(*self.wild(n), (count,))
        value = self.fitted(self.floating(), (count, *x.shape[1:])).astype(x.dtype)
        kind = random.randrange(4)
        if kind == 0:
            return [paddle.index_add(x, index, 0, value)]
        if kind == 1:
            return [paddle.scatter(x, index, value, overwrite=False)]
        if kind == 2:
            return [paddle.scatter_nd_add(x, index.unsqueeze(-1), value)]
        return [paddle.put_along_axis(x, self.whole(0, n, x.shape), 0.5, 0)]

    def lottery(self):
        x = self.floating()
        kind = self.random.randrange(5)
        if kind == 0:
            return [F.dropout(x, 0.3, training=True)]
        if kind == 1:
            return [paddle.uniform(x.shape, x.dtype), paddle.rand(x.shape).astype(x.dtype)]
        if kind == 2:
            return [paddle.randn(x.shape).astype(x.dtype) + x]
        if kind == 3:
            return [paddle.randint(0, 9, x.shape)]
        return [paddle.bernoulli(F.sigmoid(x))]

    # ---- memory and control flow -------------------------------------------------------------

    def write(self):
        """Something written in place: a tensor of the outside, or one made here."""
        random = self.random
        if random.random() < 0.5:
            state = random.choice(self.states)
            value = self.fitted(self.floating().detach(), state.spec.shape).astype(state.dtype)
            kind = random.random()
            if kind < 0.3:
                state.set_value(F.tanh(value))
            elif kind < 0.6 and state.ndim and state.spec.shape[0]:
                at = self.whole(*self.wild(state.spec.shape[0]), ())
                state[at if random.random() < 0.5 else random.randrange(state.spec.shape[0])] = (
                    value[0]
                )
            else:
                state.multiply_(paddle.full([], 0.5, state.dtype))
                state.add_(F.tanh(value))
            return [state * 1.0]
        y = self.floating().clone()
        if y.ndim and random.random() < 0.6:
            part = y[0] if random.random() < 0.5 else y[..., :1]
            where = 0 if part.ndim < y.ndim else (..., slice(0, 1))
            y[where] = self.fitted(self.floating(), part.spec.shape).astype(y.dtype)
        else:
            y.tanh_() if random.random() < 0.5 else y.add_(self.fitted(y * 0.5, y.spec.shape))
        return [y]

    def test(self):
        return self.floating().detach().astype("float32").sum() > self.random.choice((-1.0, 0.0))

    def branch(self):
        x, y = self.floating(), self.floating()
        pool, shape = self.pool, self.any().spec.shape

        def side(seed):
            self.random.seed(seed)
            self.pool = [*pool, x * 1.0]
            for _ in range(self.random.randint(0, 2)):
                self.pool += self.step()
            made = self.fitted(self.floating().astype(x.dtype), shape)
            return made, y * self.random.choice((1.0, 2.0))

        seeds = self.random.random(), self.random.random(), self.random.random()
        try:
            found = paddle.static.nn.cond(self.test(), *(partial(side, s) for s in seeds[:2]))
        finally:
            self.pool = pool
            self.random.seed(seeds[2])
        return [*found]

    def rounds(self):
        x, limit = self.floating(), self.random.randint(0, 4)
        other, count = self.partner(x), paddle.zeros([], "int64")
        kind = self.random.randrange(3)

        def body(k, y):
            now = [F.tanh(y * other + 0.1), y * 0.5 + F.softmax(y) if y.ndim else y, y - y.mean()]
            return k + 1, self.fitted(now[kind], x.spec.shape)

        def goes_on(k, y):
            return paddle.logical_and(k < limit, y.detach().astype("float32").sum() < 50.0)

        return [*paddle.static.nn.while_loop(goes_on, body, [count, x * 1.0])]

    def decode(self):
        """A loop that writes into caches by slices, and takes the best place of each row: of whole
        numbers, so that ties are many and no executor rounds.
        """
        random, texts = self.random, self.random.choice((1, 1, 2, 8))
        size, kind, wide = (
            max(random.choice(self.sizes), 1),
            random.randrange(3),
            random.choice((1, 2)),
        )
        dtype = random.choice((self.floating().dtype, "int64"))
        x = self.whole(-2, 3, (texts, size)).astype(dtype)
        cache, told = paddle.zeros([texts, 6, size], dtype), paddle.zeros([texts, 6], "int64")
        if random.random() < 0.2:  # it writes over the values that it was given
            cache = self.whole(-1, 2, (texts, 6, size)).astype(dtype)
        best = random.choice((paddle.argmax, paddle.argmin))

        def body(at, x, cache, told):
            before = cache[:, at] if number else cache[:, at : at + 1].squeeze(1)
            if kind:
                cache[:, at : at + wide] = x.unsqueeze(1)
            else:
                cache[:, at] = x + before
            if twice:  # at places that are known, over rows that may just have been written
                cache[:, 1:3] = (x - 1).unsqueeze(1)
            told[:, at] = best(cache.sum(1), -1)
            return (
                at + 1,
                (x + cache[:, at // 2] + told[:, at : at + 1].astype(dtype)) % 3,
                cache,
                told,
            )

        number, twice, end = random.random() < 0.5, random.random() < 0.4, self.whole(0, 6, ())
        start = [paddle.zeros([], "int64"), x, cache, told]
        return paddle.static.nn.while_loop(lambda at, *_: at < end, body, start)[1:]
