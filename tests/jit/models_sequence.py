"""Networks that read and write sequences."""

import math

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from tests.jit.models import I, N, model

EOS, START = 0, 1


@model((N(2, 4, 3),), (N(3, 6, 3),))
class UnrolledGRU(nn.Layer):
    """A cell written out, unrolled by Python."""

    def __init__(self, size=3, hidden=4):
        super().__init__()
        self.hidden = hidden
        self.gates = nn.Linear(size + hidden, 2 * hidden)
        self.candidate = nn.Linear(size + hidden, hidden)

    def cell(self, x, h):
        z, r = F.sigmoid(self.gates(paddle.concat([x, h], -1))).chunk(2, axis=-1)
        new = paddle.tanh(self.candidate(paddle.concat([x, r * h], -1)))
        return (1 - z) * h + z * new

    def forward(self, x):
        h = paddle.zeros([x.shape[0], self.hidden])
        outputs = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            outputs.append(h)
        return paddle.stack(outputs, axis=1), h


@model((N(2, 5, 3), I(6)), (N(1, 7, 3), I(7)))
class LSTMToALength(nn.Layer):
    """A loop over a length that is a tensor; states in a tuple."""

    def __init__(self, size=3, hidden=4):
        super().__init__()
        self.cell, self.hidden = nn.LSTMCell(size, hidden), hidden

    def forward(self, x, length):
        state = (paddle.zeros([x.shape[0], self.hidden]), paddle.zeros([x.shape[0], self.hidden]))
        total = paddle.zeros([x.shape[0], self.hidden])
        for t in range(length):
            y, state = self.cell(x[:, t], state)
            total = total + y
        return total, state


@model((N(2, 4, 3),), (N(1, 5, 3),))
class TwoWays(nn.Layer):
    """Paddle's own recurrent layers, forward and backward."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, direction="bidirect")
        self.gru = nn.GRU(8, 4)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, last = self.gru(y)
        return {"all": z, "last": last, "h": h, "c": c}


@model((I(6, 1, 4),), (I(6, 1, 6),), learns=False)
class Seq2Seq(nn.Layer):
    """Reads a sentence, writes one until it says <eos>: how long that takes, the data knows."""

    def __init__(self, words=6, dim=4, most=8):
        super().__init__()
        self.words = nn.Embedding(words, dim)
        self.encoder, self.decoder = nn.GRUCell(dim, dim), nn.GRUCell(dim, dim)
        self.out, self.most = nn.Linear(dim, words), most

    def encode(self, source):
        h = paddle.zeros([source.shape[0], self.words.weight.shape[1]])
        for t in range(source.shape[1]):
            _, h = self.encoder(self.words(source[:, t]), h)
        return h

    def forward(self, source):
        h = self.encode(source)
        word = paddle.full([source.shape[0]], START, "int64")
        output = paddle.zeros([self.most], "int64")
        score = paddle.zeros([1])
        n = 0
        while n < self.most:
            _, h = self.decoder(self.words(word), h)
            logits = F.log_softmax(self.out(h), axis=-1)
            word = logits.argmax(axis=-1)
            score = score + logits.max()
            output[n] = word[0]
            n += 1
            if (word == EOS).all():
                break
        return output, score, h


@model((I(5, 3), N(5)), (I(5, 4), N(5)), learns=False)
def beam_search(source, bias, width=2, most=5):
    """The `width` best prefixes, again and again, till the best of them has ended."""
    table = paddle.cos(paddle.arange(25, dtype="float32")).reshape([5, 5]) + bias
    table = F.log_softmax(table + source.sum().astype("float32") * 0.01, axis=-1)
    scores = paddle.to_tensor([0.0, -1e9])
    words = paddle.full([width], START, "int64")
    history = paddle.zeros([most, width], "int64")
    step = paddle.zeros([], "int64")
    while step < most and words[0] != EOS:
        total = (scores.unsqueeze(1) + table[words]).flatten()
        scores, best = paddle.topk(total, width)
        parents, words = best // 5, best % 5
        history = history.index_select(parents, axis=1)
        history[step] = words
        step = step + 1
    return history, scores, step


class Attention(nn.Layer):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.dim = heads, dim // heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, mask=None, cache=None):
        b, n, _ = x.shape
        q, k, v = (
            t.reshape([b, n, self.heads, self.dim]).transpose([0, 2, 1, 3])
            for t in self.qkv(x).split(3, axis=-1)
        )
        if cache is not None:
            k, v = paddle.concat([cache[0], k], axis=2), paddle.concat([cache[1], v], axis=2)
        scores = q @ k.transpose([0, 1, 3, 2]) / math.sqrt(self.dim)
        if mask is not None:
            scores = paddle.where(mask, scores, paddle.full_like(scores, -1e9))
        y = F.softmax(scores, axis=-1) @ v
        return self.out(y.transpose([0, 2, 1, 3]).reshape([b, n, -1])), (k, v)


class Block(nn.Layer):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, mask=None, cache=None):
        y, cache = self.attention(self.norm1(x), mask, cache=cache)
        x = x + y
        return x + self.mlp(self.norm2(x)), cache


@model((N(2, 4, 6),), (N(1, 5, 6),))
class Encoder(nn.Layer):
    """Multi-head attention with residuals, no mask."""

    def __init__(self, dim=6, depth=2):
        super().__init__()
        self.blocks = nn.LayerList([Block(dim, 2) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x, _ = block(x)
        return x


@model((I(7, 2, 4),), (I(7, 1, 6),))
class GPT(nn.Layer):
    """Causal attention; the last layer is the embedding again."""

    def __init__(self, words=7, dim=6, longest=8, depth=2):
        super().__init__()
        self.words, self.places = nn.Embedding(words, dim), nn.Embedding(longest, dim)
        self.blocks = nn.LayerList([Block(dim, 2) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.words(ids) + self.places(paddle.arange(n))
        mask = paddle.tril(paddle.ones([n, n], "bool"))
        for block in self.blocks:
            x, _ = block(x, mask=mask)
        return self.norm(x) @ self.words.weight.T


@model((I(7, 1, 3),), (I(7, 1, 2),), learns=False, dtype="float64")
class GPTWithCache(GPT):
    """Writes on with keys and values kept in a list: one word at a time."""

    def generate(self, ids, count):
        caches = [None] * len(self.blocks)
        x, start = ids, 0
        for _ in range(count):
            n = x.shape[1]
            h = self.words(x) + self.places(paddle.arange(start, start + n))
            mask = paddle.tril(paddle.ones([n, start + n], "bool"), diagonal=start)
            for k, block in enumerate(self.blocks):
                h, caches[k] = block(h, mask, cache=caches[k])
            logits = self.norm(h)[:, -1] @ self.words.weight.T
            x = logits.argmax(axis=-1, keepdim=True)
            ids = paddle.concat([ids, x], axis=1)
            start += n
        return ids, logits

    def forward(self, ids):
        return self.generate(ids, 3)


@model((I(7, 1, 3),), (I(7, 1, 2),), learns=False)
class GPTUntilEnd(GPT):
    """Writes into a buffer of full length until it says <eos>."""

    def forward(self, ids):
        given = ids.shape[1]
        room = paddle.concat([ids, paddle.zeros([1, 8 - given], "int64")], axis=1)
        place = paddle.full([], given, "int64")
        while place < 8:
            logits = super().forward(room)
            word = logits[0, place - 1].argmax()
            room[0, place] = word
            place += 1
            if word == EOS:
                break
        return room, place


@model((I(9, 2, 8),), (I(9, 3, 10),))
class TextCNN(nn.Layer):
    """Convolutions of several widths over words; the longest words win."""

    def __init__(self, words=9, dim=4, widths=(2, 3, 4)):
        super().__init__()
        self.words = nn.Embedding(words, dim, padding_idx=0)
        self.convs = nn.LayerList([nn.Conv1D(dim, 3, w) for w in widths])
        self.drop, self.fc = nn.Dropout(0.3), nn.Linear(3 * len(widths), 2)

    def forward(self, ids):
        x = self.words(ids).transpose([0, 2, 1])
        pooled = [F.relu(conv(x)).max(axis=-1) for conv in self.convs]
        return self.fc(self.drop(paddle.concat(pooled, axis=1)))


@model((I(10, 4), I(10, 4)), (I(10, 6), I(10, 6)))
class Word2Vec(nn.Layer):
    """Skip-gram; the negatives are drawn anew each time."""

    def __init__(self, words=10, dim=4, negatives=3):
        super().__init__()
        self.inner, self.outer = nn.Embedding(words, dim), nn.Embedding(words, dim)
        self.negatives, self.count = negatives, words

    def forward(self, center, context):
        u, v = self.inner(center), self.outer(context)
        noise = paddle.randint(0, self.count, [center.shape[0], self.negatives])
        near = F.log_sigmoid((u * v).sum(-1))
        far = F.log_sigmoid(-paddle.einsum("bd,bnd->bn", u, self.outer(noise))).sum(-1)
        return -(near + far).mean()


@model((N(4, 3), I(3, 4)), (N(6, 3), I(3, 6)))
class CRF(nn.Layer):
    """The forward algorithm in logarithms; decoding by Viterbi in eval mode."""

    def __init__(self, tags=3):
        super().__init__()
        self.moves = self.create_parameter([tags, tags])

    def score(self, emissions, tags):
        total = emissions[0, tags[0]]
        for t in range(1, len(emissions)):
            total = total + self.moves[tags[t - 1], tags[t]] + emissions[t, tags[t]]
        return total

    def viterbi(self, emissions):
        best, back = emissions[0], []
        for x in emissions[1:]:
            options = best.unsqueeze(1) + self.moves
            back.append(options.argmax(0))
            best = options.max(0) + x
        path = [best.argmax()]
        for pointers in reversed(back):
            path.insert(0, pointers[path[0]])
        return paddle.stack(path), best.max()

    def forward(self, emissions, tags):
        if not self.training:
            return self.viterbi(emissions)
        alpha = emissions[0]
        for t in range(1, emissions.shape[0]):
            alpha = paddle.logsumexp(alpha.unsqueeze(1) + self.moves, axis=0) + emissions[t]
        return paddle.logsumexp(alpha, axis=0) - self.score(emissions, tags)


@model((N(5, 4), I(3, 2)), (N(7, 4), I(3, 3)))
def ctc_loss(logits, labels):
    """Connectionist temporal classification, the recursion over time a loop on a tensor."""
    labels = labels + 1
    log_p = F.log_softmax(logits, axis=-1)
    size = 2 * labels.shape[0] + 1
    symbols = paddle.zeros([size], "int64")
    symbols[1::2] = labels
    skip = paddle.concat([paddle.zeros([2], "bool"), (symbols[2:] != symbols[:-2])])
    skip = skip & (symbols != 0)
    low = paddle.full([size], -1e5)
    alpha = paddle.where(paddle.arange(size) < 2, log_p[0][symbols], low)
    t = paddle.ones([], "int64")
    while t < logits.shape[0]:
        one = paddle.concat([low[:1], alpha[:-1]])
        two = paddle.where(skip, paddle.concat([low[:2], alpha[:-2]]), low)
        alpha = paddle.logsumexp(paddle.stack([alpha, one, two]), axis=0) + log_p[t][symbols]
        t += 1
    return -paddle.logsumexp(alpha[-2:], axis=0)


@model((N(2, 4), N(2, 3, 4)), (N(1, 4), N(1, 5, 4)))
class MemoryNetwork(nn.Layer):
    """Asks its memory several times; stops asking when sure."""

    def __init__(self, dim=4, hops=3):
        super().__init__()
        self.question = nn.Linear(dim, dim)
        self.hops = hops

    def forward(self, query, memory):
        trace = []
        for _ in range(self.hops):
            weights = F.softmax((memory * query.unsqueeze(1)).sum(-1), axis=-1)
            read = (weights.unsqueeze(-1) * memory).sum(1)
            if weights.max() > 0.9:
                query = query + read
            else:
                query = paddle.tanh(self.question(query)) + read
            trace.append(weights)
        return query, trace


@model((N(1, 4, 3),), (N(1, 5, 3),), learns=False)
class PointerNetwork(nn.Layer):
    """Points at each input once: a mask of what is left is written in place."""

    def __init__(self, dim=3):
        super().__init__()
        self.cell, self.query = nn.GRUCell(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        left = paddle.ones(x.shape[:2], "float32")
        h, word = x.mean(1), x[:, 0]
        order, total = [], 0.0
        for _ in range(x.shape[1]):
            _, h = self.cell(word, h)
            scores = (self.query(h).unsqueeze(1) * x).sum(-1) - 1e9 * (1 - left)
            at = scores.argmax(-1)
            total = total + F.log_softmax(scores, -1)[0, at[0]]
            left[0, at] = 0.0
            word = x[:, at[0]]
            order.append(at[0])
        return paddle.stack(order), total


TREE = (("a", "b"), (("c", "a"), "b"))


@model((N(3, 4), TREE), (N(3, 4), ("a", ("b", "c"))))
class TreeLSTM(nn.Layer):
    """Recursion over a tree of Python's tuples."""

    def __init__(self, dim=4):
        super().__init__()
        self.gates = nn.Linear(2 * dim, 5 * dim)
        self.index = {"a": 0, "b": 1, "c": 2}

    def node(self, tree, words):
        if isinstance(tree, str):
            x = words[self.index[tree]]
            return x, paddle.zeros_like(x)
        (h1, c1), (h2, c2) = (self.node(child, words) for child in tree)
        i, f1, f2, o, u = self.gates(paddle.concat([h1, h2])).chunk(5)
        c = F.sigmoid(i) * u.tanh() + F.sigmoid(f1) * c1 + F.sigmoid(f2) * c2
        if c.abs().max() > 1:
            c = c.tanh()
        return F.sigmoid(o) * c.tanh(), c

    def forward(self, words, tree):
        h, _ = self.node(tree, words)
        return h


@model((I(6, 2, 3), I(6, 2, 4)), (I(6, 1, 4), I(6, 1, 2)))
class Translator(nn.Layer):
    """Paddle's Transformer, with masks."""

    def __init__(self, words=6, dim=8):
        super().__init__()
        self.words = nn.Embedding(words, dim)
        self.body = nn.Transformer(dim, 2, 1, 1, 16, dropout=0.0)
        self.out = nn.Linear(dim, words)

    def forward(self, source, target):
        mask = self.body.generate_square_subsequent_mask(target.shape[1])
        return self.out(self.body(self.words(source), self.words(target), tgt_mask=mask))
