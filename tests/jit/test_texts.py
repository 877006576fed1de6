"""`print` shows texts with values of a program when it runs, and functions return and keep them,
see `test_leaving_numbers.py`; any other use of them is refused.
"""

# ruff: noqa: UP030, UP031, UP032, F507
import pytest

import minipaddle as paddle
from minipaddle.jit import to_static


def formatted(x):
    n, k, y = x.mean().item(), int(x.max()), x.sum()
    print(f"loss {n:.3f}", f"{n!r:>8}|{k:4d}|{k=}", n, k, x.max().item() > 2)
    print(f"{y} {y:.2f} {x} {n:{9}.{2}f}", f"{k}" + "a" + f"{n}", "b" + f"{k}", sep="; ", end=".\n")
    print("{1:5.2f} {0!r} {a}".format(k, n, a=n))
    print("{} and {:.1f}, {{}}".format("text", n), "{0.shape}".format(x), x)


def with_percents(x):
    n, k = x.mean().item(), int(x.max())
    print("a %s %d%%, %-8.2f|" % (n, k, n), "%(a)s %(b)r" % {"a": k, "b": "b"}, "%s" % k)
    print("%s %5s" % (x, "a"), "%s" % "b", "no %d" % 3)
    print(str(n), repr(k), format(n, ".1e"), str(x), str([1]), format("a", ">3"))


def in_a_loop(x):
    i = 0
    while i < x.sum():
        print(f"round {i}: {float(x.sum()) / 2 + i}")
        i = i + 1
    if x.sum() > 0:
        print(f"positive: {x.sum().item()}")
    else:
        print("negative: %s" % bool(x.sum()))
    return i


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("function", [formatted, with_percents, in_a_loop])
def test_it_prints_when_it_runs(function, backend, capsys):
    static = to_static(function, backend=backend)
    for values in ([0.5, 2.0], [1.0, 2.25], [-1.0, -3.0]):
        x = paddle.to_tensor(values)
        function(x)
        expected = capsys.readouterr().out
        static(x)
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x * len(f"{x.item()}"),
        lambda x: x if f"{x.item()}" == "1.0" else -x,
        lambda x: {str(x.item()): 1},
        lambda x: [f"{x.item()}"].index("1.0"),
        lambda x: f"{x.item()}".upper(),
        lambda x: print(f"{x:{x.item()}}"),
        lambda x: print(f"{f'{x.item()}':>9}"),
        lambda x: print("%*d" % (3, x.item())),
    ],
)
def test_other_uses_are_refused(use):
    with pytest.raises(TypeError, match="no value yet"):
        to_static(use)(paddle.to_tensor(1.0))


kept = []


@pytest.mark.parametrize(
    "use",
    [
        lambda x: f"{x.item()}",
        lambda x: [x, {"a": "%d" % x.item()}],
        lambda x: kept.append("{}".format(x)),
    ],
)
def test_a_program_of_tensors_alone_leaves_no_texts(use, tmp_path):
    with pytest.raises(TypeError, match="no value yet"):
        to_static(use, full_graph=True)(paddle.to_tensor(1.0))
    with pytest.raises(TypeError, match="no value yet"):
        paddle.jit.save(to_static(use), str(tmp_path / "f"), [paddle.static.InputSpec([])])
    assert not kept


def test_a_text_has_the_value_of_its_time(capsys):
    def f(x):
        y = x + 0
        text = f"{y}"
        y.add_(x)
        print(text)

    for function in (f, to_static(f)):
        function(paddle.ones([]))
        assert capsys.readouterr().out.count("1.") == 1


@pytest.mark.parametrize("x", [1.0, [65, 66], -1])
def test_chr_raises_the_error_of_eager_mode(x):
    found = []
    for function in (chr, to_static(lambda x: chr(x))):
        with pytest.raises((TypeError, ValueError)) as caught:
            function(paddle.to_tensor(x))
        found.append(caught.type)
    assert found[0] is found[1]


def test_no_handler_ends_a_refusal():
    def f(x):
        try:
            name = "".join([f"{x.item()}", ".txt"])
        except TypeError:
            name = ""
        return x * len(name)

    with pytest.raises(TypeError, match=r"no value yet\n  at: .*test_texts.py:\d+, in f"):
        to_static(f)(paddle.to_tensor(1.0))


def test_texts_of_pythons_values_are_strings():
    def f(x, n):
        return {f"{n}": x, f"{n!r:>4}{x.shape}": x, "{}-{a}".format(n, a=1): x, "%03d" % n: x}

    x = paddle.ones([2])
    assert [*to_static(f)(x, 7)] == [*f(x, 7)] == ["7", "   7[2]", "7-1", "007"]


@pytest.mark.parametrize("use", [lambda x: print("%d %d" % (x.item(),)), lambda x: f"{x}" + 1])
def test_errors_of_formats_are_errors(use):
    with pytest.raises(TypeError):
        to_static(use)(paddle.to_tensor(1.0))
