"""What is read through a cache has the scores of the model that reads the whole text each time."""

import copy

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.executors.compiler import compiler
from minipaddle.generation import Decoder, Sampler, Scheduler, search_beams
from minipaddle.generation.beams import log_softmax

WORDS, CONTEXT = 7, 16


def gpt(seed=0, width=16, layers=2, tied=True):
    paddle.seed(seed)
    net = paddle.text.GPT(WORDS, width, layers, heads=2, context=CONTEXT, tied=tied)
    for p in net.parameters():
        p.set_value(p * 8)  # fresh weights hardly tell one token from another
    net.eval()
    return net


def tokens(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, WORDS, shape)


def whole(net, text) -> np.ndarray:
    """Scores [length, vocab] without a cache."""
    with paddle.no_grad():
        return net(paddle.to_tensor(np.array([text])))[0].numpy()


def near(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("backend", "pieces"),
    [("interpreter", ([16], [5, 1, 1, 9], [15, 1], [3, 13])), ("native", ([13, 3],))],
)
def test_pieces_of_a_text(backend, pieces):
    net, text = gpt(), tokens(CONTEXT)
    decoder, expected = Decoder(net, slots=3, backend=backend), whole(net, text)
    for cuts in pieces:
        start = 0
        for n in cuts:
            found = decoder.read(text[start : start + n], slot=1, start=start)
            near(found, expected[start : start + n])
            start += n


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_steps_of_eight_texts_with_packed_weights_that_change():
    net, text = gpt(width=192, layers=1), tokens(8, CONTEXT)
    for p in net.parameters():
        p.set_value(p / 8)
    decoder = Decoder(net, slots=8, backend="native")
    decoder.read_together(text[:, :2], [0] * 8)
    weight = net.blocks[0].mlp[2].weight
    for n in range(2, 7):
        for _ in range(2):
            found = decoder.step(text[:, n], [n] * 8)
        near(found, np.stack([whole(net, each[: n + 1])[-1] for each in text]))
        weight.set_value(weight * (1 + n))  # of the last block: keys and values stay
    packed = [x for f in decoder.programs.values() for x in f.executables[0].kernels.prepacked]
    assert len(packed) >= 4


def test_slots_are_texts_of_their_own():
    """Texts of different lengths take steps together; tokens that are taken back leave no trace."""
    net, texts = gpt(), tokens(3, CONTEXT)
    decoder = Decoder(net, slots=3)
    lengths = [4, 1, 9]
    for k, n in enumerate(lengths):
        decoder.read(texts[k, :n], slot=k)
    decoder.read([0, 0, 0, 0], slot=1, start=1)  # drafts that were not accepted
    for step in range(7):
        at = [n + step for n in lengths]
        scores = decoder.step([texts[k, n] for k, n in enumerate(at)], at)
        for k, n in enumerate(at):
            near(scores[k], whole(net, texts[k, : n + 1])[-1])


def test_reorder():
    net, texts = gpt(), tokens(3, 6)
    decoder = Decoder(net, slots=3)
    for k in range(3):
        decoder.read(texts[k], slot=k)
    decoder.reorder([2, 2, 0])
    scores = decoder.step([1, 2, 3], [6, 6, 6])
    for found, text, last in zip(scores, texts[[2, 2, 0]], (1, 2, 3)):
        near(found, whole(net, [*text, last])[-1])


def test_weights_may_change():
    """A decoder computes with the weights of now; a model whose layers changed gets a new one."""
    net, text = gpt(), tokens(1, 4)
    first = net.generate(paddle.to_tensor(text), 6, temperature=0).tolist()
    twin = copy.deepcopy(net)
    other = gpt(seed=1)
    net.set_state_dict(other.state_dict())
    assert (
        net.generate(paddle.to_tensor(text), 6, temperature=0).tolist()
        == other.generate(paddle.to_tensor(text), 6, temperature=0).tolist()
    )
    assert twin.generate(paddle.to_tensor(text), 6, temperature=0).tolist() == first
    decoder = net.decoder(1)
    assert net.decoder(1) is decoder
    net.norm = paddle.nn.LayerNorm(16)
    assert net.decoder(1) is not decoder


def test_longer_than_the_context():
    """Past the context the last tokens are read again, as without a cache."""
    net, text = gpt(), tokens(2, 12)
    written = net.generate(paddle.to_tensor(text), 8, temperature=0).numpy()
    for row in written:
        for n in range(12, 20):
            assert row[n] == whole(net, row[max(0, n - CONTEXT) : n])[-1].argmax()


def test_rows_end():
    net, text = gpt(), tokens(4, 3)
    plain = net.generate(paddle.to_tensor(text), 12, temperature=0).numpy()
    end = int(plain[0, 6])
    ended = net.generate(paddle.to_tensor(text), 12, temperature=0, end=end).numpy()
    for a, b in zip(plain, ended):
        stop = next((k for k in range(3, 15) if a[k] == end), 15)
        np.testing.assert_array_equal(a[:stop], b[:stop])
        assert (b[stop:] == end).all()


def test_errors():
    decoder = Decoder(gpt(), slots=2)
    with pytest.raises(ValueError, match="text of 17 tokens\n  expected: at most context=16"):
        decoder.read(tokens(17))
    with pytest.raises(ValueError, match="text of 17 tokens"):
        decoder.step([1, 1], [3, 16])
    for wrong in ({"top_k": 0}, {"top_p": 1.5}, {"top_p": 0}, {"temperature": -0.1},
                  {"top_k": 2.5}, {"top_k": True}, {"temperature": "hot"}, {"temperature": np.nan},
                  {"top_p": "x"}):  # fmt: skip
        with pytest.raises(ValueError, match="generate with " + next(iter(wrong))):
            Sampler(**wrong)
    with pytest.raises(ValueError, match="empty prompt"):
        search_beams(decoder, [], 3)
    assert not Scheduler(decoder).busy


# ---- sampling and beams ------------------------------------------------------------------------


def test_probabilities():
    """Against the definitions, with ties, and with both limits."""
    p = np.array([0.05, 0.4, 0.25, 0.25, 0.05])
    scores = np.log(p) + 3
    near(Sampler().probabilities(scores), p)
    near(Sampler(temperature=0.5).probabilities(scores), p**2 / (p**2).sum())
    near(Sampler(top_k=2).probabilities(scores), np.array([0, 0.4, 0.25, 0, 0]) / 0.65)
    near(Sampler(top_p=0.6).probabilities(scores), np.array([0, 0.4, 0.25, 0, 0]) / 0.65)
    near(Sampler(top_p=0.7).probabilities(scores), np.array([0, 0.4, 0.25, 0.25, 0]) / 0.9)
    near(Sampler(top_p=1e-9).probabilities(scores), [0, 1, 0, 0, 0])
    near(
        Sampler(top_k=3, top_p=0.6).probabilities(scores),
        np.array([0, 0.4, 0.25, 0, 0]) / 0.65,
    )
    near(Sampler(temperature=0).probabilities(scores), [0, 1, 0, 0, 0])
    near(Sampler(top_k=99).probabilities(scores), p)
    near(Sampler().probabilities([0, -np.inf, 1000]), [0, 0, 1])
    near(Sampler(temperature=1e-320).probabilities([1, 3, 2]), [0, 1, 0])
    for scores in ([1, np.nan, 0], [1, np.inf, 0], [-np.inf] * 3):
        for sampler in (Sampler(), Sampler(temperature=0)):
            with pytest.raises(ValueError, match="the largest score of next tokens is"):
                sampler.draw(scores)
        with pytest.raises(ValueError, match="score of next tokens"):
            log_softmax([scores])


def test_draws_follow_the_probabilities():
    p, sampler = np.array([0.5, 0.3, 0.15, 0.05, 0.0]), Sampler(seed=0)
    with np.errstate(divide="ignore"):
        scores = np.log(p)
    seen = np.bincount([sampler.draw(scores) for _ in range(20000)], minlength=5)
    expected = p * 20000
    assert seen[4] == 0
    assert ((seen - expected)[:4] ** 2 / expected[:4]).sum() < 16.3  # chi-square, 3 degrees, 0.1 %


def test_beams_that_hold_everything_find_the_likeliest_text():
    net, prompt = gpt(), [1, 2]
    found = search_beams(Decoder(net, slots=WORDS**2), prompt, 3)
    texts = [[a, b, c] for a in range(WORDS) for b in range(WORDS) for c in range(WORDS)]
    with paddle.no_grad():
        scores = net(paddle.to_tensor(np.array([prompt + t for t in texts]))).numpy()
    logs = log_softmax(scores)
    sums = [sum(logs[k, 1 + i, t[i]] for i in range(3)) for k, t in enumerate(texts)]
    assert found == texts[int(np.argmax(sums))]


def test_beams_and_the_end():
    """One beam is the greedy text; the token `end` ends a beam and is left out."""
    net, prompt = gpt(seed=3), [1, 2]
    greedy = net.generate(paddle.to_tensor([prompt]), 6, temperature=0)[0, 2:].tolist()
    assert search_beams(Decoder(net), prompt, 6) == greedy
    end = greedy[2]
    assert search_beams(Decoder(net), prompt, 6, end=end) == greedy[: greedy.index(end)]
    text = net.generate(paddle.to_tensor([prompt, prompt]), 6, beams=3, end=end).numpy()
    assert text.shape == (2, 8)
    np.testing.assert_array_equal(text[0], text[1])
    best = search_beams(Decoder(net, slots=3), prompt, 6, end=end)
    assert text[0, 2:].tolist() == best + [end] * (6 - len(best))
