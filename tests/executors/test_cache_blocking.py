"""Groups in blocks compute what the interpreter computes record by record."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.eager.device import NUMPY, QUIET
from minipaddle.engine.executors.executable_cache import ExecutableCache
from minipaddle.engine.ir.control import fused
from minipaddle.engine.passes.manager import optimized
from minipaddle.executors.interpreted import cache_blocking
from minipaddle.executors.interpreted import executable as interpreted
from minipaddle.executors.interpreted.cache_blocking import BlockedRun, Cut, blocks_of, flatten
from minipaddle.executors.interpreted.executable import Interpreted
from tests.passes.programs import cases, draw_arrays, program_of

pytestmark = pytest.mark.sweep(one_in=3)

F = paddle.nn.functional
MODELS = [
    ("models_vision.ManyNorms, step", 8), ("models_vision.ResNet, step", 8),
    ("models_vision.ViT, step", 8), ("models_sequence.GPT, step", 64),
    ("models_dynamic.VAE, step", 8), ("models_dynamic.MixtureOfExperts, step", 8),
]  # fmt: skip
"""Programs, and the bytes of a block."""


@pytest.fixture
def tiny(monkeypatch):
    """Blocks of a few elements, of everything that can be cut."""
    limits = {"LEAST": 1, "BLOCK": 64, "STRETCH": 1, "OPERATIONS": 0}
    for name, value in limits.items():
        monkeypatch.setattr(cache_blocking, name, value)
    monkeypatch.setattr(interpreted, "LEAST", 0)


def run(program, arrays):
    return QUIET.copy().run(BlockedRun(NUMPY), program, [a.copy() for a in arrays])


def blocks_in(program):
    found = [blocks_of(r.attrs["region"]) for r in program.records if r.op is fused]
    return [blocks for blocks in found if blocks is not None]


def agree(function, *specs, near=1e-5):
    """Raise unless a function gives the same in blocks; returns how it was cut."""
    program = program_of(function, *specs)
    after = optimized(program, epilogue=False).program
    arrays = draw_arrays(program)
    wanted = QUIET.copy().run(BlockedRun.__base__(NUMPY), program, arrays)
    for a, b in zip(wanted, run(after, arrays), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(b, a, rtol=near, atol=near)
    return blocks_in(after)


# ---- one group -------------------------------------------------------------------------------


def test_a_chain_is_cut_into_blocks(tiny):
    (found,) = agree(lambda x: (x * 2.0 + 1.0).tanh() * x, (100,))
    assert (found.extent, found.iterations) == (
        100,
        16,
    )  # the last one has 4 elements
    assert len(found.sweeps) == 1


def test_rows_are_reduced_inside_of_a_block(tiny):
    (found,) = agree(lambda x: F.softmax(x * 2.0) + x, (32, 8))
    assert found.iterations == 2
    assert not found.folds


def test_columns_are_reduced_over_the_blocks(tiny):
    (found,) = agree(lambda x: ((x * 2.0).tanh().sum(0), (x * 2.0).tanh().max(0)), (33, 4))
    assert len(found.folds) == 2
    assert len(found.sweeps) == 1


def test_what_needs_the_whole_sum_is_another_sweep(tiny):
    (found,) = agree(lambda x: ((x - x.mean()) / x.std()).exp(), (50, 4), near=1e-4)
    assert len(found.sweeps) == 3
    assert [len(s.work) > 0 for s in found.sweeps] == [True] * 3


def test_what_a_sweep_wrote_is_read_by_the_next(tiny):
    """A result of the first way over the blocks is not computed again in the second."""

    def f(x):
        y = (x * x).exp()
        return y, y - y.sum()

    (found,) = agree(f, (64,), near=1e-4)
    names = [[w.record.op.name for w in s.work] for s in found.sweeps]
    assert names == [["multiply", "exp", "sum"], ["subtract"]]


def test_a_reshape_and_a_transpose_are_cut_too(tiny):
    def f(x):
        return (x.reshape([20, 3, 4]).transpose([0, 2, 1]) * 2.0).exp().reshape([20, 12]).tanh()

    (found,) = agree(f, (60, 4))
    strides = {cut.stretch for cut in found.cuts.values() if cut}
    assert strides == {1, 3}  # three rows of x for each turn


def test_a_value_for_each_row_and_one_for_all(tiny):
    agree(lambda x, y, z: ((x + y) * z).exp() + y, (40, 6), (40, 1), (6,))
    agree(lambda x, y: (x + y.reshape([1, 1])).exp() * 2.0, (40, 6), (1,))


def test_pieces_side_by_side_inside_of_a_row(tiny):
    agree(lambda x, y: paddle.concat([x * 2.0, y.exp()], axis=1).tanh() * 3.0, (40, 3), (40, 5))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: paddle.concat([x * 2.0, x.exp()], axis=0).tanh(),  # from where depends on the row
        lambda x: paddle.tril(x.exp() * 2.0) + 1.0,
        lambda x: (x.T.exp() + x).tanh(),  # needed in two orders: no group at all
        lambda x: x[5:].exp() * 2.0 + 1.0,
    ],
)
def test_what_can_not_be_cut_is_computed_in_one_piece(tiny, function):
    agree(function, (40, 40))


def test_how_a_value_is_cut():
    assert Cut(1, 3).part(2, 4) == (slice(None), slice(6, 12))
    assert Cut(1, 3).shape((5, 30, 2), 4) == (5, 12, 2)


def test_an_error_names_the_line(tiny):
    program = optimized(program_of(lambda x: (x * 2.0).exp() + 1.0, (64,))).program
    with pytest.raises(TypeError, match=r"multiply\(.*(.|\n)*test_cache_blocking.py"):
        run(program, [np.array(["no number"] * 64)])


# ---- what pays -------------------------------------------------------------------------------


def long_chain(x):
    for _ in range(4):
        x = (x * 0.5 + 1.0).tanh()
    return x


def test_only_large_groups_that_do_much_are_cut():
    assert not agree(long_chain, (1000,))
    assert not agree(lambda x: x.exp() * 2.0, (1 << 19,))
    (found,) = agree(long_chain, (1 << 19,))
    assert found.iterations * 4 == cache_blocking.BLOCK
    (inner,) = agree(long_chain, (2, 1 << 18))  # a row is too large for a block: columns
    assert {cut.axis for cut in inner.cuts.values()} == {1}


def test_groups_that_are_not_cut_are_taken_apart():
    program = program_of(lambda x, y: (long_chain(x), long_chain(y)), (1 << 19,), (8,))
    flat = flatten(optimized(program).program)
    assert [r.op.name for r in flat.records].count("fused") == 1
    assert len(flat.records) == 14  # a group and its result, twelve of the other
    arrays = draw_arrays(program)
    for a, b in zip(run(program, arrays), run(flat, arrays), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)


# ---- whole programs --------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "block"), MODELS)
def test_models(name, block, tiny, monkeypatch):
    monkeypatch.setattr(cache_blocking, "BLOCK", block)
    near = 1e-2 if "ViT" in name else 2e-4
    for case in cases(name):
        executable = Interpreted(case.program, {"decompose_from": 0})
        arrays = [np.array(a) for a in case.arrays]
        found = QUIET.copy().run(executable, case.program, arrays)
        for a, b in zip(case.results, found, strict=True):
            np.testing.assert_allclose(
                b.astype("float64"), a.astype("float64"), rtol=near, atol=near
            )
        assert blocks_in(executable.program)


def test_it_runs_what_would_be_compiled_where_there_is_no_compiler(monkeypatch):
    monkeypatch.setattr("minipaddle.engine.executors.executable_cache.compiler", lambda: None)
    f = paddle.jit.to_static(long_chain, backend="native")
    x = paddle.randn([1 << 19])
    np.testing.assert_allclose(f(x).numpy(), long_chain(x).numpy(), rtol=1e-6)
    (executable,) = f.executables
    assert isinstance(executable, Interpreted)
    assert executable.report().endswith("by the interpreter; groups in blocks: 1")
    assert ExecutableCache("interpreter").executable(f.main_program, [x.array]) is None


def test_sizes_that_are_open_are_those_of_the_call(monkeypatch):
    monkeypatch.setattr("minipaddle.engine.executors.executable_cache.compiler", lambda: None)
    spec = [paddle.static.InputSpec([None], name="x")]
    f = paddle.jit.to_static(lambda x: x * x.shape[0], input_spec=spec, backend="native")
    assert f(paddle.ones([2])).tolist() == [2.0, 2.0]
    assert f(paddle.ones([3])).tolist() == [3.0, 3.0, 3.0]
    assert len(f.executables) == 2
