"""The space of a kernel: found by asking its emitter; every point of it computes the same."""

import numpy as np
import pytest
import torch

from minipaddle import plugged
from minipaddle.engine.codegen.kernel_schedule import KernelSchedule, following, pick
from minipaddle.engine.codegen.step import kernel_of, signature_of
from minipaddle.tuning.evolution import choose, crossover, generation, mutate, proposals
from minipaddle.tuning.space import Space, key_of
from tests.codegen.compiling import Call, needs_gcc, record_of, run_all

RNG = np.random.default_rng(0)


def toy():
    """Asks for a tile only where there is one."""
    how = pick("how", "rows", ("rows", "dots", "panels"))
    tile = pick("tile", 8, (2, 4, 8, 16)) if how != "dots" else 0
    return how, tile, pick("unroll", 1, (1, 2))


SPACE = Space(toy)


# ---- the space ------------------------------------------------------------------------------


def test_a_space_is_what_was_asked():
    points = [*SPACE]
    assert len(points) == 2 * 4 * 2 + 2
    assert len({key_of(p) for p in points}) == len(points)
    assert SPACE.default == {"how": "rows", "tile": 8, "unroll": 1}
    assert SPACE.kernel({"how": "dots", "unroll": 2}) == ("dots", 0, 2)


def test_answers_that_are_no_options_or_not_asked_for_do_not_count():
    assert SPACE.point({"how": "no such", "tile": 3, "unroll": True}) == SPACE.default
    assert SPACE.point({"how": "dots", "tile": 2}) == {"how": "dots", "unroll": 1}


def test_the_same_question_has_the_same_answer():
    with following(KernelSchedule({"a": 2})):
        assert [pick("a", 1, (1, 2)), pick("a", 1, (1,))] == [2, 2]
        with following(None):
            assert pick("a", 1, (1, 2)) == 1
    assert pick("a", 1, (1, 2)) == 1


def test_samples_reach_the_whole_space_and_nothing_else():
    found = {key_of(SPACE.sample(RNG)) for _ in range(400)}
    assert found == {key_of(p) for p in SPACE}


def test_a_mutant_differs_in_one_answer():
    for _ in range(100):
        parent = SPACE.sample(RNG)
        child = mutate(SPACE, parent, RNG)
        assert child == SPACE.point(child)
        differing = [n for n in child if n in parent and child[n] != parent[n]]
        assert len(differing) == 1


def test_a_child_has_its_parents_answers():
    for _ in range(100):
        a, b = SPACE.sample(RNG), SPACE.sample(RNG)
        child = crossover(SPACE, a, b, RNG)
        assert child == SPACE.point(child)
        assert all(x in (a.get(n), b.get(n)) for n, x in child.items())
    both = {"how": "rows", "tile": 2, "unroll": 1}, {"how": "panels", "tile": 16, "unroll": 2}
    assert len({key_of(crossover(SPACE, *both, RNG)) for _ in range(200)}) == 8


def test_the_model_picks_except_for_a_part():
    points, scores = [{"k": k} for k in range(50)], [k % 25 for k in range(50)]
    best = choose(points, scores, 4, RNG, epsilon=0)
    assert sorted(p["k"] for p in best) == [23, 24, 48, 49]
    chance = [p["k"] for _ in range(50) for p in choose(points, scores, 4, RNG, epsilon=1)]
    assert np.mean([scores[k] for k in chance]) == pytest.approx(12, abs=2)
    assert len(choose(points, scores, 99, RNG)) == 50


def test_evolution_finds_the_best_point_in_fewer_trials_than_chance():
    def write():
        return [pick(f"k{k}", 0, range(6)) for k in range(5)]

    space = Space(write)
    seconds = lambda p: 1.0 + sum(abs(x - 4) for x in p.values())

    def search(rng, evolves: bool) -> float:
        times = [(space.default, seconds(space.default))]
        for _ in range(12):
            if evolves:
                batch = proposals(space, times, lambda ps: [-seconds(p) for p in ps], 8, rng)
            else:
                batch = [space.sample(rng) for _ in range(8)]
            times += [(p, seconds(p)) for p in batch]
        return min(t for _, t in times)

    found = [[search(np.random.default_rng(s), e) for s in range(5)] for e in (True, False)]
    assert max(found[0]) == 1.0  # the optimum: 1 of 7776 points, after 96 trials
    assert min(found[1]) > 1.0


def test_no_point_is_measured_twice():
    times = [(p, 1.0) for p in SPACE]
    assert proposals(SPACE, times, lambda ps: [0] * len(ps), 8, RNG) == []
    left = times.pop()[0]
    found = [proposals(SPACE, times, lambda ps: [0] * len(ps), 8, RNG) for _ in range(5)]
    assert all(points in ([], [left]) for points in found)
    assert [left] in found


def test_steps_of_evolution_are_slots():
    with plugged("tuning.mutate", lambda space, parent, rng: {"how": "dots", "unroll": 2}):
        assert {"how": "dots", "unroll": 2} in generation(SPACE, [(SPACE.default, 1.0)], 20, RNG)


# ---- real kernels ---------------------------------------------------------------------------

PERMS = {"x_perm": (0, 1), "out_perm": (0, 1)}
IMAGE = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}


def data(*shape):
    return RNG.standard_normal(shape).astype("float32")


def convolved(x, w):
    x, w = torch.from_numpy(x).permute(0, 3, 1, 2), torch.from_numpy(w).permute(3, 2, 0, 1)
    y = torch.nn.functional.conv2d(x, w, padding=1)
    return y.permute(0, 2, 3, 1).numpy()


def input_gradient(g, w):
    """Of a convolution of 11×9 pixels: its adjoint, by the same function turned around."""
    return convolved(g, np.ascontiguousarray(w[::-1, ::-1].swapaxes(2, 3)))


X, Y, G = data(37, 300), data(300, 53), data(2, 11, 9, 16)
W, SMALL = data(3, 3, 16, 16), data(2, 9, 11, 3)
CASES = {
    "product": ("product", [X, Y], PERMS | {"y_perm": (0, 1)}, X @ Y),
    "product, y transposed": ("product", [X, data(53, 300)], PERMS | {"y_perm": (1, 0)}, None),
    "convolution": ("conv_last", [G, W], IMAGE, convolved(G, W)),
    "convolution, 3 channels": ("conv_last", [SMALL, W[:, :, :3]], IMAGE,
                                convolved(SMALL, W[:, :, :3])),
    "adjoint": ("conv_last_input_grad", [G, W], IMAGE | {"size": (11, 9)}, input_gradient(G, W)),
}  # fmt: skip


@needs_gcc
@pytest.mark.parametrize("case", CASES)
def test_every_point_computes_the_same(case):
    op, inputs, attrs, expected = CASES[case]
    expected = inputs[0] @ inputs[1].T if expected is None else expected
    inputs = [np.ascontiguousarray(x) for x in inputs]
    record = record_of(op, inputs, **attrs)
    space, rng = Space(lambda: kernel_of(record, "tuned_kernel")), np.random.default_rng(1)
    ways = {"way": ("rows", "panels", "dots", "blas"),
            "algorithm": ("direct", "winograd", "im2col", "columns")}  # fmt: skip
    points = [space.default]
    for name, options in ways.items():
        points += [space.point({name: o}) for o in options if name in space.default]
    points += [space.sample(rng) for _ in range(3)]
    calls = []
    for k, point in enumerate({key_of(p): p for p in points}.values()):
        kernel = space.kernel(point)
        source = kernel.source.replace("tuned_kernel", f"tuned{k}_{op}")
        calls.append(Call(kernel._replace(name=f"tuned{k}_{op}", source=source), record, inputs))
    assert len(calls) > 3
    for point, (got,) in zip(points, run_all(calls), strict=False):
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=2e-4, err_msg=str(point))


def test_a_signature_is_the_kernel_but_for_names():
    def signature(shape=(3, 5), name="x", kernel="k0_tanh", op="tanh"):
        record = record_of(op, [np.ones(shape, "float32")])
        record.inputs[0].attrs["name"] = name
        return signature_of(kernel_of(record, kernel))

    assert signature(name="weights_of_layer", kernel="k17_tanh") == signature()
    assert len({signature(), signature((3, 6)), signature(op="sin")}) == 3
