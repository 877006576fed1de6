"""What layers do, which passes look for: attention, cells along a sequence, normed images."""

from __future__ import annotations

from math import inf
from unittest import mock

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.nn.layer import rnn
from tests.executors.steps_arranging import Arranging


class Layers(Arranging):
    """Needs `random`, `pool`, `sizes`, `parameters` and `states`."""

    def given(self, shape, dtype):
        """A value of a shape: sometimes a parameter's."""
        x = self.random.choice(self.parameters) if self.random.random() < 0.4 else self.floating()
        return self.fitted(x, shape).astype(dtype)

    def attend(self):
        """softmax(q kᵀ) v with one of several masks, or two products with something between. Rows
        may be longer than a block of an online softmax, and heads may share keys and values.
        """
        random, dtype = self.random, self.floating().dtype
        lead = random.choice(((), (), (2,), (2, 3), (1, 2)))
        queries, keys = random.choice((1, 3, 8, 17)), random.choice((2, 3, 8, 17, 210))
        wide, last = random.choice((1, 2, 5, 8)), random.choice((1, 2, 5, 8))
        q = self.given((*lead, queries, wide), dtype)
        shared = (*lead[:-1], 1) if lead and random.random() < 0.3 else lead
        k = self.given((*shared, keys, wide), dtype)
        v = self.given((*shared, keys, last), dtype)
        scores = paddle.matmul(q, k, transpose_y=True) * 0.3
        mask = paddle.tril(paddle.ones([queries, keys], "bool"), random.choice((0, 0, 1, -1)))
        if random.random() < 0.3:
            mask = F.sigmoid(self.given((queries, keys), dtype).detach()) > 0.4
        hidden = paddle.where(mask, paddle.zeros([], dtype), paddle.full([], -inf, dtype))
        options = [
            lambda: F.softmax(paddle.where(mask, scores, paddle.full([], -inf, dtype))),
            lambda: F.softmax(paddle.where(mask, scores, paddle.full([], -9.0, dtype))),
            lambda: F.softmax(scores + hidden), lambda: F.softmax(scores), lambda: F.gelu(scores),
            lambda: F.dropout(F.softmax(scores + hidden), 0.3),
            lambda: F.relu(scores + self.given((keys,), dtype)), lambda: F.sigmoid(scores),
        ]  # fmt: skip
        weights = random.choice(options)()
        found = paddle.matmul(weights, v)
        if random.random() < 0.3:
            found = F.relu(found + self.given((last,), dtype))
        if lead and random.random() < 0.4:  # heads side by side
            order = [*range(len(lead) - 1), len(lead), len(lead) - 1, len(lead) + 1]
            found = found.transpose(order).flatten(len(lead))
        return [weights, found] if random.random() < 0.2 else [found]

    def unroll(self):
        """A cell along a sequence, with the same weights at each step."""
        random, dtype = self.random, self.floating().dtype
        steps, count = random.randint(1, 5), random.choice((1, 2, 3))
        wide, high = random.choice((2, 8, 17)), random.choice((2, 8))
        turned, axis = random.random() < 0.5, random.choice((0, 1))
        xs = self.given((steps, count, wide) if axis == 0 else (count, steps, wide), dtype)
        w = self.given((high, wide) if turned else (wide, high), dtype)
        u, h = self.given((high, high), dtype), self.given((count, high), dtype)
        b, states = self.given((high,), dtype), []
        for k, x in enumerate(paddle.unstack(xs, axis)):
            x = xs[k] if axis == 0 and random.random() < 0.5 else x
            mixed = paddle.matmul(x, w, transpose_y=turned) + paddle.matmul(h * 0.5, u) + b
            h = F.tanh(mixed) if turned else F.sigmoid(mixed) * h
            states.append(h)
        return [paddle.stack(states, axis)] if random.random() < 0.5 else [h]

    def recur(self):
        """A recurrent layer along texts of several lengths, its weights made of those of the graph:
        it stays a loop.
        """
        random, dtype = self.random, self.floating().dtype
        make = random.choice((nn.LSTM, nn.GRU, nn.SimpleRNN))
        sizes = (1, 2, 5), (1, 3), (1, 4), (2, 3)
        steps, count, wide, high = map(random.choice, sizes)
        direction, layers = random.choice(("forward", "bidirect")), random.choice((1, 1, 2))
        with paddle.utils.unique_name.guard():
            layer = make(wide, high, layers, direction, random.random() < 0.5)
        for name, weight in [*layer.named_parameters()]:
            owner = layer
            *path, last = name.split(".")
            for part in path:
                owner = getattr(owner, part)
            del owner._parameters[last]
            object.__setattr__(owner, last, self.given(weight.shape, dtype) * 0.5)
        lead = (steps, count) if layer.time_major else (count, steps)
        lengths = self.whole(1, steps + 1, (count,)) if random.random() < 0.6 else None
        x = self.given((*lead, wide), dtype)
        with mock.patch.object(rnn, "LONG", random.choice((1, 1, 32))):
            y, last = layer(x, sequence_length=lengths)
        return [y, *(last if type(last) is tuple else (last,))]

    def align(self):
        """The loss of all alignments of labels with steps of a text."""
        random = self.random
        steps, count, classes, most = random.choice((3, 5)), random.choice((1, 3)), 4, 2
        x = self.given((steps, count, classes), random.choice(("float32", "float64")))
        labels = self.whole(1, classes, (count, most)).astype("int32")
        lengths = self.whole(2, steps + 1, (count,)), self.whole(0, most + 1, (count,))
        how = random.choice(("none", "mean", "sum"))
        return [F.ctc_loss(F.log_softmax(x), labels, *lengths, reduction=how)]

    def apart(self):
        """Pieces of a value, each with something of its own done to it, and all together again."""
        random, x = self.random, self.floating()
        x = x if x.ndim else x.reshape([1])
        axis, acts = self.axis(x), (F.relu, F.tanh, F.sigmoid, lambda y: y * 0.5)
        n = x.shape[axis]
        cuts = sorted(random.randint(0, n) for _ in range(random.randint(1, 3)))
        parts = [
            paddle.slice(x, [axis % x.ndim], [a], [b])
            for a, b in zip([0, *cuts], [*cuts, n], strict=True)
            if a < b and random.random() < 0.9
        ]
        done = [random.choice(acts)(part) for part in parts]
        if random.random() < 0.3:
            return done
        random.shuffle(done)
        return [paddle.concat(done, axis)] if done else [x * 1.0]

    def normed(self):
        """A convolution, or any image, normed by its channels, with an activation."""
        random, dtype = self.random, self.floating().dtype
        n, c, size = random.choice((1, 2, 3)), random.choice((1, 2, 3, 8)), random.choice((4, 5, 7))
        outs = random.choice((1, 2, 8))
        x = self.given((n, c, size, size), dtype)
        if random.random() < 0.7:
            k = random.choice((1, 3))
            b = self.given((outs,), dtype) if random.random() < 0.5 else None
            x = F.conv2d(x, self.given((outs, c, k, k), dtype), b, padding=k // 2)
        else:
            outs = c
        mean, scale, shift = (self.weight((outs,), dtype) for _ in range(3))
        spread = self.weight((outs,), dtype).square() + 0.5
        options = [
            lambda: F.batch_norm(x, mean, spread, scale, shift),
            lambda: F.batch_norm(x, mean * 1.0, spread, scale, shift, training=True),
            lambda: F.group_norm(x, random.choice((1, outs)), 1e-5, scale, shift),
            lambda: F.instance_norm(x, weight=scale, bias=shift),
        ]  # fmt: skip
        acts = (F.relu, F.relu, F.hardswish, lambda y: y + x, lambda y: y)
        return [random.choice(acts)(random.choice(options)())]

    def weight(self, shape, dtype):
        """A value that is made of parameters and states alone."""
        x = self.random.choice([*self.parameters, *self.states])
        return self.fitted(x, shape).astype(dtype)
