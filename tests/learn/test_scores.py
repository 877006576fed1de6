"""The scoreboard: what it counts, whom it plugs in, and that it sees wrong results."""

import pytest

import minipaddle as paddle
from minipaddle import learn
from minipaddle.engine.executors.compiler import compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")


@pytest.fixture
def step():
    with paddle.no_grad():
        static = paddle.jit.to_static(lambda x: (x * 2.0).tanh() + x.sum(), backend="native")
        static(paddle.ones([8, 16]))
    return static


def test_kernels_and_bytes(step):
    scores = learn.scoreboard(step, rounds=1, naive={"fusion": False}).scores
    assert list(scores) == ["naive", "reference"]
    naive, size = scores["naive"], 8 * 16 * 4
    assert naive.kernels == 4  # times, tanh, sum, add
    assert naive.traffic == 2 * size + 2 * size + (size + 4) + (2 * size + 4)
    assert scores["reference"].kernels < 4
    assert scores["reference"].traffic < naive.traffic
    assert naive.right
    assert naive.seconds > 0


def test_a_pass_of_the_readers_is_asked_and_its_mistakes_are_seen(step):
    seen = []

    def kept(program):
        seen.append(program)
        return program

    def broken(program):
        return type(program)(**vars(program) | {"outputs": program.records[:1]})

    board = learn.scoreboard(step, rounds=1, yours={"passes.fusion": kept})
    assert seen
    assert board.scores["yours"].kernels == 4
    assert board.scores["yours"].right
    (output,) = seen[0].outputs
    first = seen[0].records[0]
    assert first.spec == output.spec  # so the verifier has nothing to say
    wrong = learn.scoreboard(step, rounds=1, yours={"passes.fusion": broken})
    assert not wrong.scores["yours"].right
    assert "wrong results" in str(wrong)
    assert "wrong results" not in str(board)


def test_a_chapter_means_what_the_reader_solved(step, course, solved):
    solved("02_second/slope")
    assert learn.scoreboard(step, rounds=1, yours="02_second").scores["yours"].right


def test_a_step_without_a_native_program_is_refused():
    interpreted = paddle.jit.to_static(lambda x: x + x, backend="interpreter")
    interpreted(paddle.ones([2]))
    with pytest.raises(RuntimeError, match=r"no native program"):
        learn.scoreboard(interpreted)
