"""Cases of the operators that optimizers step with. They have no derivative."""

from tests.ops.cases import Case, fixed, normal, together, uniform


def adam_step(p, lr, first, second, power1, power2, epsilon=1e-3):
    """Kingma and Ba, algorithm 1, with the bias corrections written out."""
    step = first / (1 - power1)
    return p - lr * step / ((second / (1 - power2)).sqrt() + epsilon)


CASES = {
    "adam_step": Case(
        together(
            normal((2, 3)),
            fixed(0.1),
            normal((2, 3)),
            uniform(0.1, 2.0, (2, 3)),
            uniform(0.1, 0.9, (), ()),
        ),
        adam_step,
        {"epsilon": 1e-3},
        tolerance=10,
    ),
    "averaged": Case(normal((2, 3), (2, 3)), lambda a, x: 0.9 * a + 0.1 * x, {"rate": 0.9}),
    "averaged_square": Case(
        normal((2, 3), (2, 3)), lambda a, x: 0.9 * a + 0.1 * x**2, {"rate": 0.9}
    ),
    "descend": Case(together(normal((2, 3), (2, 3)), fixed(0.1)), lambda p, d, lr: p - lr * d),
    "pushed": Case(normal((2, 3), (2, 3)), lambda v, g: 0.9 * v + g, {"momentum": 0.9}),
}
