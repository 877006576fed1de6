"""Cases of the operators that optimizers and scalers step with. They have no derivative."""

import numpy as np

from tests.ops.cases import Case, fixed, normal, together, uniform


def adam_step(p, lr, first, second, power1, power2, epsilon=1e-3):
    """Kingma and Ba, algorithm 1, with the bias corrections written out."""
    step = first / (1 - power1)
    return p - lr * step / ((second / (1 - power2)).sqrt() + epsilon)


def scale_after(scale, found, good, bad, expected) -> Case:
    """A case of a scale that doubles after 3 good steps, and is halved after 2 bad ones."""
    return Case(
        fixed(np.array(scale), np.array(found), np.array(good, "int32"), np.array(bad, "int32")),
        numpy=lambda s, f, g, b: tuple(
            np.array(x, dtype) for x, dtype in zip(expected, (s.dtype, "int32", "int32"))
        ),
        attrs={"incr_every": 3, "decr_every": 2, "incr_ratio": 2.0, "decr_ratio": 0.5},
    )


CASES = {
    "check_finite_and_unscale": [
        Case(
            together(fixed(np.array(4.0)), normal((2, 3), (4,))),
            numpy=lambda s, a, b: (np.array(False), a / s, b / s),
        ),
        Case(
            together(fixed(np.array(4.0), np.array([1.0, np.inf, 2.0])), normal((4,))),
            numpy=lambda s, a, b: (np.array(True), a / s, b / s),
        ),
    ],
    "update_loss_scaling": [
        scale_after(8.0, False, 0, 1, (8.0, 1, 0)),
        scale_after(8.0, False, 2, 0, (16.0, 0, 0)),
        scale_after(8.0, True, 2, 0, (8.0, 0, 1)),
        scale_after(8.0, True, 0, 1, (4.0, 0, 0)),
        scale_after(1.5, True, 0, 1, (1.0, 0, 0)),
    ],
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
