"""Figures of a model from its program, against formulas for decoders."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.distributed.planner import figures
from minipaddle.distributed.planner.counting import scale
from minipaddle.distributed.planner.figures import next_token, trace_step
from minipaddle.distributed.planner.splitting import blocks_of
from minipaddle.engine.core.record import Spec
from minipaddle.engine.passes.manager import optimized
from minipaddle.static import InputSpec

from .models import Decoder

WORDS, WIDTH, HEADS, BLOCKS, TOKENS = 8000, 512, 8, 6, 1024
SAMPLE = InputSpec([TOKENS], "int64")


def decoder(**options):
    with paddle.LazyGuard():
        return Decoder(WORDS, WIDTH, HEADS, BLOCKS, **options)


@pytest.fixture(scope="module")
def found():
    """Figures for one rank, for four with a cut sequence, and for four without."""
    ways = {"one": (1, True), "four": (4, True), "plain": (4, False)}
    return {
        name: figures(decoder(), SAMPLE, *how[:1], sequence=how[1]) for name, how in ways.items()
    }


def nbytes(sizes, prime, batch=1):
    return sum(s.nbytes(batch, prime) for s in sizes)


def test_weights_are_counted_by_part(found):
    """But for the last bias of a block, which is added where the next one begins."""
    block, cut = 12 * WIDTH**2 + 13 * WIDTH, found["four"].weights
    assert found["one"].weights == {
        "first": WORDS * WIDTH,
        "block": block - WIDTH,
        "last": WORDS * WIDTH + 3 * WIDTH,
    }
    assert cut["block"] == 12 * WIDTH**2 // 4 + 7 * WIDTH // 4 + 6 * WIDTH  # norms, biases of rows
    assert cut["first"] == WORDS * WIDTH // 4
    assert found["one"].blocks == BLOCKS


def test_operations_are_those_of_the_formula(found):
    """Narayanan et al. 2021: a block has 72 B s h² (1 + s / 6h) with its backward."""
    one = found["one"]
    for batch in (1, 6):
        formula = 72 * batch * TOKENS * WIDTH**2 * (1 + TOKENS / (6 * WIDTH))
        assert one.operations(batch, "block") == pytest.approx(formula)
    assert one.operations(1, "last") == pytest.approx(6 * TOKENS * WIDTH * WORDS)
    assert found["four"].operations(1, "block") == pytest.approx(one.operations(1, "block") / 4)


def test_a_sequence_in_pieces_divides_all_that_is_kept(found):
    """Korthikanti et al. 2022: 34 bytes for each number, without masks of dropout 32 (ours keeps
    more of norms); tensor parallel alone leaves 10 of them whole.
    """
    kept = {k: nbytes(f.kept["block"].sizes, f.prime) / TOKENS / WIDTH for k, f in found.items()}
    assert 32 < kept["one"] < 40
    assert kept["four"] == pytest.approx(kept["one"] / 4, rel=0.06)
    whole = (kept["plain"] - kept["one"] / 4) / (1 - 1 / 4)
    assert 8 < whole < 17


def test_what_is_kept_is_what_the_engine_holds():
    """At the peak of the plan of the whole step live the values that each part keeps, and a few
    that are being computed.
    """
    blocks, batch, sample = 3, 4, Spec((128,), np.dtype("int64"))
    with paddle.LazyGuard():
        net = Decoder(500, 128, 4, blocks)
    found = figures(net, sample, half=False)
    sizes = {p: [*kept.sizes, *kept.on_chip] for p, kept in found.kept.items()}
    held = {p: nbytes(each, found.prime, batch) for p, each in sizes.items()}
    program = trace_step(net, sample, batch, next_token).program
    live = optimized(program, recompute=False).planned().live
    assert 0.85 < (blocks * held["block"] + held["first"] + held["last"]) / live <= 1


def test_what_grows_with_the_batch_and_what_does_not(found):
    """Twice the batch: twice the values, as many weights."""
    one = found["one"]
    twice, once = (nbytes(one.kept["block"].sizes, one.prime, n) for n in (2, 1))
    assert twice == 2 * once
    product = next(k for k in one.kernels if k.products and not k.on_chip and k.part == "block")
    ((_, rows, columns, depth),) = product.products
    assert (scale(rows, 3, one.prime), scale(columns, 3, one.prime)) == (3 * TOKENS, 3 * WIDTH)
    assert scale(depth, 3, one.prime) == WIDTH


def test_collectives_of_tensor_parallel(found):
    """Two sums forward and two backward; in pieces of the sequence each is a scatter and a gather,
    and what was gathered is gathered again.
    """
    message = TOKENS * WIDTH * 2
    for name, count, half in (("plain", 2, False), ("four", 4, True)):
        prime = found[name].prime
        for backward in (False, True):
            sent = [s for s in found[name].sent if s.part == "block" and s.backward == backward]
            large = [s for s in sent if s.size.nbytes(1, prime) > message / 100]
            assert [s.half for s in large] == [half] * count
            assert {s.size.nbytes(1, prime) for s in large} == {message}
    again = found["four"].kept["block"].gathered
    assert [s.nbytes(1, found["four"].prime) for s in again] == [message] * 2
    assert found["plain"].kept["block"].gathered == []


def test_scores_stay_on_the_chip(found):
    scores = HEADS * TOKENS**2 * 2
    one = found["one"]
    assert nbytes(one.kept["block"].on_chip, one.prime) == scores
    used = [k for k in one.kernels if k.on_chip]
    assert {k.part for k in used} == {"block"}
    assert all(k.masked for k in used)
    again = [k for k in used if k.again]
    assert [k.products for k in again] == [used[0].products]


def test_nothing_is_allocated_and_the_model_stays_as_it_was():
    net = decoder()
    before = [n for n, _ in net.named_sublayers()]
    figures(net, SAMPLE, 2)
    assert [n for n, _ in net.named_sublayers()] == before
    assert all("array" not in vars(p) for p in net.parameters())
    assert net.blocks[0].feed.down.bias is not None
    assert not net.blocks[0]._forward_pre_hooks
    assert blocks_of(net).count == BLOCKS


def test_a_gated_model_alternates_columns_and_rows():
    """Of gate and up columns, of down rows: a rank has a quarter of each."""
    net = decoder(inner=1376, llama=True)
    block = 4 * WIDTH**2 + 3 * WIDTH * 1376
    assert figures(net, SAMPLE, 4).weights["block"] == block // 4 + 2 * WIDTH


def test_a_float_sample_and_a_loss_of_its_own():
    net = paddle.nn.Sequential(*(paddle.nn.Linear(16, 16) for _ in range(3)))
    found = figures(net, InputSpec([16], "float32"), loss=lambda model, x, wanted: model(x).sum())
    assert found.weights["block"] + found.weights["last"] == 16 * 16 + 16
    assert found.prime not in (2, 3, 16)


def test_a_model_without_blocks_is_refused():
    with pytest.raises(ValueError, match="no blocks in Linear"):
        figures(paddle.nn.Linear(2, 2), InputSpec([2], "float32"))


def test_figures_do_not_depend_on_values(found):
    """Weights with values, and weights that were never drawn, have the same figures."""
    lazy, drawn = found["one"], figures(Decoder(WORDS, WIDTH, HEADS, BLOCKS), SAMPLE)
    assert lazy._replace(kernels=None) == drawn._replace(kernels=None)
    assert [k.moved for k in lazy.kernels] == [k.moved for k in drawn.kernels]
