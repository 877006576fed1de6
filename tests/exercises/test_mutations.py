"""The mutator itself: what it changes, and what it leaves alone."""

import pytest

from tests.exercises.mutations import mutants, sample


def changed(body: str) -> set[str]:
    source = "def f(a, b):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return {mutant.change for mutant in mutants(source)}


@pytest.mark.parametrize(
    ("body", "change"),
    [
        ("return a + b", "return a + b → return a - b"),
        ("return a + b", "return a + b → pass"),
        ("return -a", "return -a → return +a"),
        ("a += b", "a += b → a -= b"),
        ("return a < b", "return a < b → return a <= b"),
        ("return a[0]", "return a[0] → return a[1]"),
        ("return a[0]", "return a[0] → return a[-1]"),
        ("return g(a, b)", "return g(a, b) → return g(b, a)"),
        ("return a and b", "return a and b → return a or b"),
        ("if a:\n    return b", "if a: → if not a:"),
        ("while a:\n    a -= 1", "while a: → while not a:"),
        ("return a if b else 0", "return a if b else 0 → return a if not b else 0"),
        (
            "return [x for x in a if b]",
            "return [x for x in a if b] → return [x for x in a if not b]",
        ),
        (
            "return sum(a, keepdim=True)",
            "return sum(a, keepdim=True) → return sum(a, keepdim=False)",
        ),
        ("return a.sum()", "return a.sum() → return a.max()"),
        ("return median(a)", "return median(a) → return max(a)"),
        ("for x in a:\n    b.append(x)", "b.append(x) → pass"),
        ("raise ValueError('no')", "raise ValueError('no') → pass"),
        ("try:\n    a()\nexcept KeyError:\n    b(1)", "b(1) → b(2)"),
    ],
)
def test_a_mutation_is_made(body, change):
    assert change in changed(body)


@pytest.mark.parametrize(
    "body", ['"""Text + text."""\nreturn a', "return f(a, a)", "return gcd(a, b)", "raise E(a + 1)"]
)
def test_what_means_nothing_is_left_alone(body):
    dropped = {change for change in changed(body) if change.endswith("→ pass")}
    assert changed(body) == dropped


def test_defaults_and_decorators_are_the_stubs():
    assert mutants("@g(1)\ndef f(a=1):\n    pass\n") == []


def test_methods_and_constants_are_mutated():
    changes = {
        m.change
        for m in mutants("_E = 2\n\nclass C:\n    k = 1\n    def f(self):\n        return 3")
    }
    assert {"_E = 2 → _E = 3", "k = 1 → k = 2", "return 3 → return 4"} <= changes


def test_a_sample_is_the_same_for_the_same_seed():
    source = "def f(a, b):\n    return (a + 1) * (b + 2) - (a + 3)\n"
    assert sample(source, 5, "x") == sample(source, 5, "x")
    assert sample(source, 5, "x") != sample(source, 5, "y")
    assert len(sample(source, 500, "x")) == len(mutants(source))
    assert len({m.text for m in mutants(source)}) == len(mutants(source))
