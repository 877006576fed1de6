"""Checks of 25_serving/padding."""

import asyncio
import math
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.inference.model import Model
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.serving.batcher import BatchPolicy
from minipaddle.serving.metrics import Metrics, ModelMetrics
from minipaddle.serving.replica import ServedModel
from minipaddle.serving.runner import ModelRunner

exercise = Exercise(
    title="Padding: one run for many requests, and each gets its own rows back",
    level="easy",
    minutes=20,
    slots={
        "serving.choose_bucket": "choose_bucket",
        "serving.lay_together": "lay_together",
        "serving.cut_apart": "cut_apart",
    },
    hints=(
        "Two requests, of 2 rows and of 3, share a run of 8 rows. At which row does the second one "
        "begin, at which one does it end, and what lies in the last three?",
        "Keep one number, the end of the last piece: the next piece starts there. The same numbers "
        "cut the results. A slice of an array is the array's own memory.",
        "for each input: end = 0; for each request: start, end = end, end + its rows; memory[start:"
        "end] = it\nmemory[end:] = memory[end - 1]\ncut: the same starts and ends, .copy()",
    ),
    wrong={
        "a bucket that is too small": "bucket >= rows → bucket <= rows",
        "always a larger bucket": "bucket >= rows → bucket > rows",
        "the largest bucket": "return bucket → return buckets[-1]",
        "no bucket, no rows": "choose_bucket(): return rows → return buckets[-1]",
        "zeros pad the batch": "place[end:] = place[end - 1] → place[end:] = 0",
        "the first row pads the batch": "place[end:] = place[end - 1] → place[end:] = place[0]",
        "nothing pads the batch": "place[end:] = place[end - 1] → pass",
        "everything is the last row": ("place[end:] = place[end - 1] → place[:] = place[end - 1]"),
        "only the first input": "place[start:end] = request[k] → place[start:end] = request[0]",
        "each request at the beginning": "lay_together(): start, end = end, end + len(request[k]) "
        "→ start, end = 0, len(request[k])",
        "views of the memory": "output[start:end].copy() → output[start:end]",
        "each request gets the first rows": (
            "cut_apart(): start, end = end, end + count → start, end = 0, count"
        ),
        "each request gets all that follows": "output[start:end].copy() → output[start:].copy()",
        "the padding is a result, too": (
            "return results → return [*results, [output[end:].copy() for output in outputs]]"
        ),
        "outputs first, then requests": (
            "return results → return [list(each) for each in zip(*results)]"
        ),
        "one output": "return results → return [each[:1] for each in results]",
    },
)


@exercise.example
def the_examples(yours):
    """The three of the text."""
    expect(yours.choose_bucket([1, 2, 4, 8], 3), 4, given={"buckets": [1, 2, 4, 8], "rows": 3})
    memory = [np.zeros(4)]
    yours.lay_together(memory, [[np.array([7.0, 8])], [np.array([9.0])]])
    expect(memory[0], np.array([7.0, 8, 9, 9]), given="[7, 8] and [9] into 4 rows")
    got = yours.cut_apart([np.array([70.0, 80, 90, 90])], [2, 1])
    expect(got, [[np.array([70.0, 80])], [np.array([90.0])]], given="70, 80, 90, 90; rows 2 and 1")


@exercise.property(
    buckets=st.sets(st.integers(1, 40), min_size=1, max_size=9).map(sorted),
    rows=st.integers(1, 45),
)
def any_buckets(yours, buckets, rows):
    """Few buckets and many; more rows than any of them has."""
    expected = min((n for n in buckets if n >= rows), default=rows)
    before = list(buckets)
    given = {"buckets": before, "rows": rows}
    expect(yours.choose_bucket(buckets, rows), expected, given=given)
    expect(buckets, before, given=given, why="the buckets afterwards")


SHAPES, KINDS = [(), (3,), (2, 2)], ["float32", "int64", "float64"]


def batch_of(rows, inputs, seed, backwards=False):
    """Requests of these rows, with so many inputs of different shapes and dtypes."""
    rng = np.random.default_rng(seed)
    found = []
    for n in rows:
        arrays = [(rng.normal(size=(n, *SHAPES[k])) * 100).astype(KINDS[k]) for k in range(inputs)]
        found.append([np.flip(a.copy()) if backwards else a for a in arrays])
    return found


def check(yours, rows, inputs, padding, seed, backwards=False):
    requests = batch_of(rows, inputs, seed, backwards)
    before = [[a.copy() for a in request] for request in requests]
    whole = [np.concatenate([request[k] for request in before]) for k in range(inputs)]
    bucket = sum(rows) + padding
    wide = lambda a: np.full((bucket, 2, *a.shape[1:]), 77, a.dtype)  # a dirty memory, with gaps
    memory = [wide(a)[:, 0] if backwards else wide(a)[:, 0].copy() for a in whole]
    given = {"rows": rows, "inputs": inputs, "bucket": bucket}
    same = list(memory)
    result = yours.lay_together(memory, requests)
    expect(result, None, given=given, why="lay_together returns nothing")
    expect_that(all(a is b for a, b in zip(memory, same, strict=True)), "other memory", given=given)
    for place, rows_ in zip(memory, whole, strict=True):
        filled = np.concatenate([rows_, np.repeat(rows_[-1:], padding, 0)])
        expect(place, filled, given=given, why="what lies in the memory of an input")
    for request, old in zip(requests, before, strict=True):
        for a, b in zip(request, old, strict=True):
            expect(a, b, given=given, why="a request was written into")
    was = [a.copy() for a in memory]
    got = yours.cut_apart(memory, list(rows))
    expect(memory, was, given=given, why="the memory after cut_apart")
    expect(len(got), len(rows), given=given, why="how many requests get results")
    for mine, right in zip(got, before, strict=True):
        expect_that(isinstance(mine, list), "the results of a request are no list", got=mine)
        expect(mine, right, given=given, why="the results of a request", rtol=0, atol=0)
        kinds = [str(a.dtype) for a in mine]
        expect(kinds, [str(a.dtype) for a in right], given=given, why="their dtypes")
    kept = [[a.copy() for a in each] for each in got]
    for place in memory:
        place[...] = 0  # the next run
    for mine, right in zip(got, kept, strict=True):
        expect(mine, right, given=given, why="the results after the next run")


@exercise.property(
    rows=st.lists(st.integers(1, 5), min_size=1, max_size=9),
    inputs=st.integers(1, 3),
    padding=st.integers(0, 4),
    seed=st.integers(0, 99),
    backwards=st.booleans(),
)
def any_batch(yours, rows, inputs, padding, seed, backwards):
    """Requests of one input up to three; with and without rows that are left."""
    check(yours, rows, inputs, padding, seed, backwards)


@exercise.example
def a_large_batch(yours):
    """Many requests; infinities travel like any number; rows of no numbers at all."""
    check(yours, [7] * 40, 3, 20, 0)
    memory = [np.zeros((4, 2), "f")]
    x = np.array([[np.inf, 1.0], [np.nan, -np.inf]], "f")
    yours.lay_together(memory, [[x[:1]], [x[1:]]])
    expect(memory[0], x[[0, 1, 1, 1]], given=x, why="infinities and NaN")
    (first, second) = yours.cut_apart(memory, [1, 1])
    expect([first, second], [[x[:1]], [x[1:]]], given=x, why="infinities and NaN, back again")
    small = np.flip((np.arange(8.0) * 1e-12).reshape(4, 2))  # it lies backwards, too
    first, second = yours.cut_apart([small], [3, 1])
    expect(first[0], small[:3], given=small, why="small numbers", rtol=0, atol=0)
    expect(second[0], small[3:], given=small, why="small numbers", rtol=0, atol=0)
    empty = [np.zeros((4, 0), "f")]
    yours.lay_together(empty, [[np.zeros((3, 0), "f")]])
    expect(yours.cut_apart(empty, [3])[0][0].shape, [3, 0], given="rows of no numbers")


@cache
def digits():
    """LeNet as the server reads it from a file, and digits with their labels."""
    from minipaddle.hub import load
    from minipaddle.vision.datasets import Digits

    net = load(str(Path(__file__).parents[3] / "hub"), "lenet_digits", "local", pretrained=True)
    with tempfile.TemporaryDirectory() as folder:
        spec = paddle.static.InputSpec([None, 1, 8, 8], "float32", "image")
        paddle.jit.save(net, f"{folder}/model", input_spec=[spec])
        model = Model(f"{folder}/model", backend="interpreter", threads=1)
    return model, Digits("test")


@exercise.example
def a_model_is_served(yours):
    """LeNet reads digits for requests of 1 to 5 rows, in batches of at most 8."""
    model, data = digits()
    sizes = [1, 1, 2, 3, 5, 4, 1, 2]
    parts = np.split(data.images[: sum(sizes)], np.cumsum(sizes)[:-1])

    async def main():
        served = ServedModel(model, largest=8, buckets=[2, 4])
        runner = ModelRunner(
            served, BatchPolicy(window=0.005), ModelMetrics(Metrics(), "digits", "1")
        )
        runner.start([served.replica()])
        waiting = [runner.add([part], 0, math.inf) for part in parts]
        found = await asyncio.wait_for(asyncio.gather(*waiting), 5)
        await asyncio.wait_for(runner.close(), 5)
        return [scores for (scores,) in found]

    with exercise.plugged(yours):
        found = asyncio.run(main())
    lengths = [len(scores) for scores in found]
    expect(lengths, sizes, given={"rows": sizes}, why="how many rows come back")
    right = (np.concatenate(found).argmax(1) == data.labels[: sum(sizes)]).mean()
    expect_that(right > 0.9, "rows were mixed up: the digits are read wrong", got=right)
