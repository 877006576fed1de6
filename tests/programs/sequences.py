"""Recurrent networks, attention, decoding."""

import numpy as np

from tests.programs.common import set_weights, wave


def recurrent_cells(paddle):
    """Cells stepped by hand."""
    nn = paddle.nn
    x = paddle.to_tensor(wave(5, 2, 3))
    gru, lstm, simple = nn.GRUCell(3, 4), nn.LSTMCell(3, 4), nn.SimpleRNNCell(3, 4)
    for cell in (gru, lstm, simple):
        set_weights(cell)
    h, s = paddle.zeros([2, 4]), paddle.zeros([2, 4])
    state = (paddle.zeros([2, 4]), paddle.zeros([2, 4]))
    for step in x:
        _, h = gru(step, h)
        _, state = lstm(step, state)
        _, s = simple(step, s)
    loss = h.sum() + state[0].sum() + s.sum()
    loss.backward()
    return h, state, s, gru.weight_ih.grad[:2], lstm.bias_hh.grad


def recurrent_layers(paddle):
    """LSTM, GRU and SimpleRNN over a batch; several layers, both directions, lengths."""
    nn = paddle.nn
    x = paddle.to_tensor(wave(2, 5, 3), stop_gradient=False)
    lstm = set_weights(nn.LSTM(3, 4, num_layers=2))
    gru = set_weights(nn.GRU(3, 4, direction="bidirect"))
    rnn = set_weights(nn.SimpleRNN(3, 4, time_major=True))
    out, (h, c) = lstm(x)
    both, hg = gru(x, sequence_length=paddle.to_tensor([5, 3]))
    simple, _ = rnn(x.transpose([1, 0, 2]))
    (out.sum() + both.sum() + simple.sum()).backward()
    return {
        "lstm": [out[:, -1], h, c.shape],
        "gru": [both, hg],
        "rnn": simple[-1],
        "grad": x.grad,
        "names": [name for name, _ in gru.named_parameters()],
    }


def character_model(paddle):
    """An LSTM that learns to continue a word."""
    nn, F = paddle.nn, paddle.nn.functional
    text = "hello world"
    letters = sorted(set(text))
    ids = paddle.to_tensor([letters.index(c) for c in text])

    class Model(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(len(letters), 6)
            self.lstm = nn.LSTM(6, 8)
            self.out = nn.Linear(8, len(letters))

        def forward(self, ids, state=None):
            y, state = self.lstm(self.embed(ids), state)
            return self.out(y), state

    model = set_weights(Model(), scale=0.4)
    opt = paddle.optimizer.Adam(0.05, parameters=model.parameters())
    losses = []
    for _ in range(12):
        logits, _ = model(ids[:-1].unsqueeze(0))
        loss = F.cross_entropy(logits.squeeze(0), ids[1:])
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss.item())
    model.eval()
    token, state, written = ids[:1], None, []
    with paddle.no_grad():
        for _ in range(4):
            logits, state = model(token.unsqueeze(0), state)
            token = paddle.argmax(logits[:, -1], axis=-1)
            written.append(token.item())
    return losses[:4], losses[-1] < losses[0], len(written)


def positional_encoding(paddle):
    """Sines and cosines, and rotations of pairs (RoPE)."""
    length, width = 6, 8
    position = paddle.arange(length, dtype="float32").unsqueeze(1)
    rate = paddle.exp(paddle.arange(0, width, 2, dtype="float32") * (-np.log(10000.0) / width))
    table = paddle.zeros([length, width])
    table[:, 0::2] = paddle.sin(position * rate)
    table[:, 1::2] = paddle.cos(position * rate)
    x = paddle.to_tensor(wave(length, width))
    even, odd = x[:, 0::2], x[:, 1::2]
    sin, cos = paddle.sin(position * rate), paddle.cos(position * rate)
    turned = paddle.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).flatten(1)
    return table, turned, paddle.allclose(turned.norm(axis=-1), x.norm(axis=-1), atol=1e-5)


def attention_by_hand(paddle):
    """Causal multi-head attention written out, then against the built-in."""
    F = paddle.nn.functional
    batch, length, heads, width = 2, 5, 2, 3
    q, k, v = (
        paddle.to_tensor(wave(batch, length, heads, width, phase=p), stop_gradient=False)
        for p in (0.0, 1.0, 2.0)
    )
    scores = paddle.einsum("bqhd,bkhd->bhqk", q, k) / width**0.5
    future = paddle.triu(paddle.ones([length, length]), diagonal=1).astype("bool")
    scores = paddle.where(future, paddle.full_like(scores, -1e9), scores)
    weights = F.softmax(scores, axis=-1)
    out = paddle.einsum("bhqk,bkhd->bqhd", weights, v)
    out.square().sum().backward()
    built_in = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return weights[0], out, q.grad, paddle.allclose(out, built_in, atol=1e-5)


def transformer_encoder(paddle):
    """Built-in encoder layers with a padding mask."""
    nn = paddle.nn
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu")
    encoder = set_weights(nn.TransformerEncoder(layer, 2), scale=0.3)
    x = paddle.to_tensor(wave(2, 4, 8), stop_gradient=False)
    pad = paddle.to_tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype="float32")
    mask = ((1.0 - pad) * -1e9).reshape([2, 1, 1, 4])
    out = encoder(x, mask)
    out.square().mean().backward()
    attention = set_weights(nn.MultiHeadAttention(8, 2))
    mixed = attention(x, x, x)
    return out, x.grad, mixed[0], len(encoder.parameters())


def tiny_gpt(paddle):
    """A decoder-only language model from small parts, trained to count."""
    nn, F = paddle.nn, paddle.nn.functional
    vocabulary, width, length = 7, 8, 6

    class Block(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.project = nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

        def forward(self, x):
            b, t, c = x.shape
            qkv = self.qkv(self.norm1(x)).reshape([b, t, 3, 2, c // 2]).transpose([2, 0, 3, 1, 4])
            q, k, v = qkv[0], qkv[1], qkv[2]
            scores = paddle.matmul(q, k, transpose_y=True) / (c // 2) ** 0.5
            mask = paddle.tril(paddle.ones([t, t]))
            scores = scores + (1 - mask) * -1e4
            y = paddle.matmul(F.softmax(scores), v).transpose([0, 2, 1, 3]).reshape([b, t, c])
            x = x + self.project(y)
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Layer):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.places = nn.Embedding(length, width)
            self.blocks = nn.LayerList([Block() for _ in range(2)])
            self.norm = nn.LayerNorm(width)

        def forward(self, ids):
            x = self.tokens(ids) + self.places(paddle.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return paddle.matmul(self.norm(x), self.tokens.weight, transpose_y=True)

    model = set_weights(GPT(), scale=0.3)
    opt = paddle.optimizer.AdamW(0.01, parameters=model.parameters(), weight_decay=0.01)
    rows = paddle.to_tensor((np.arange(4)[:, None] + np.arange(length + 1)) % vocabulary)
    losses = []
    for _ in range(6):
        logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.reshape([-1, vocabulary]), rows[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss)
    return losses, model(rows[:1, :-1])[0, 0]


def sequence_to_sequence(paddle):
    """GRU encoder, GRU-cell decoder with dot attention, one step of teacher forcing."""
    nn, F = paddle.nn, paddle.nn.functional
    embed, encoder = set_weights(nn.Embedding(6, 4)), set_weights(nn.GRU(4, 5))
    cell, out = set_weights(nn.GRUCell(9, 5)), set_weights(nn.Linear(5, 6))
    source, target = paddle.to_tensor([[1, 2, 3], [3, 2, 1]]), paddle.to_tensor([[0, 3], [0, 1]])
    memory, h = encoder(embed(source))
    h, loss = h[0], 0.0
    for step in range(2):
        scores = paddle.matmul(memory, h.unsqueeze(-1)).squeeze(-1)
        context = (F.softmax(scores).unsqueeze(-1) * memory).sum(axis=1)
        _, h = cell(paddle.concat([embed(target[:, step]), context], axis=-1), h)
        loss = loss + F.cross_entropy(out(h), paddle.to_tensor([step + 1, step + 2]))
    loss.backward()
    return loss, h, embed.weight.grad, encoder.parameters()[0].grad[:2]


def beam_search(paddle):
    """The best of many continuations of a Markov chain."""
    F = paddle.nn.functional
    table = F.log_softmax(paddle.to_tensor(wave(5, 5, scale=2.0)), axis=-1)
    beam, size = paddle.to_tensor([[0]]), 3
    scores = paddle.zeros([1])
    for _ in range(4):
        options = scores.unsqueeze(1) + paddle.gather(table, beam[:, -1])
        scores, flat = paddle.topk(options.flatten(), min(size, options.numel().item()))
        parents, tokens = flat // 5, flat % 5
        beam = paddle.concat([paddle.index_select(beam, parents), tokens.unsqueeze(1)], axis=1)
    greedy, token = [], 0
    for _ in range(4):
        token = table[token].argmax().item()
        greedy.append(token)
    return beam, scores, greedy


def text_convolution(paddle):
    """Sentence classification: several widths of Conv1D, the maximum over time."""
    nn, F = paddle.nn, paddle.nn.functional
    embed = set_weights(nn.Embedding(10, 4))
    convs = nn.LayerList([nn.Conv1D(4, 3, width) for width in (2, 3)])
    set_weights(convs)
    head = set_weights(nn.Linear(6, 2))
    ids = paddle.to_tensor([[1, 2, 3, 4, 5], [9, 8, 7, 6, 0]])
    x = embed(ids).transpose([0, 2, 1])
    pooled = [F.relu(conv(x)).max(axis=-1) for conv in convs]
    logits = head(F.dropout(paddle.concat(pooled, axis=1), 0.5, training=False))
    loss = F.cross_entropy(logits, paddle.to_tensor([[0], [1]]))
    loss.backward()
    return logits, loss, embed.weight.grad[:4], convs[0].weight.grad[0]
