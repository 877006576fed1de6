"""L-BFGS: Newton's method with a curvature guessed from the last few steps.

Source: Nocedal and Wright, "Numerical Optimization", 2nd ed., algorithms 7.4 and 7.5.
"""

import warnings

from ..core.prelude import Recording, Tensor, type_error
from ..tensor.creation import zeros_like
from ..tensor.manipulation import concat
from .optimizer import Optimizer


class LBFGS(Optimizer):
    """A step is up to `max_iter` iterations, each along -H·g; H comes from `history_size` steps.

    `step(closure)` calls `closure` as often as it needs: it must clear the gradients, compute the
    loss, call backward and return the loss. `line_search_fn` is None (steps of learning_rate) or
    "strong_wolfe". It stops early when no element of the gradient exceeds `tolerance_grad`, or
    nothing changes by more than `tolerance_change`. For few parameters and full batches.

    >>> w = paddle.create_parameter([2], "float32", is_bias=True)
    >>> lbfgs = paddle.optimizer.LBFGS(parameters=[w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     lbfgs.clear_grad()
    ...     loss = ((w - paddle.to_tensor([1.0, 3.0])) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> loss = lbfgs.step(closure)
    >>> [round(x, 3) for x in w.tolist()]
    [1.0, 3.0]
    """

    def __init__(
        self, learning_rate=1.0, max_iter=20, max_eval=None, tolerance_grad=1e-7,
        tolerance_change=1e-9, history_size=100, line_search_fn=None, parameters=None,
        weight_decay=None, grad_clip=None, name=None,
    ):  # fmt: skip
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"line_search_fn is None or 'strong_wolfe', not {line_search_fn!r}")
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        if len({p.spec.dtype for p in self._parameter_list}) > 1:
            raise ValueError("LBFGS takes parameters of one dtype: it works on all as one vector")
        self.max_iter, self.max_eval = max_iter, max_eval or max_iter * 5 // 4
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        self.history: list = []  # (s, y): steps and the changes of the gradient along them
        self.before = None  # the last step and the gradient before it

    # ---- all parameters as one vector --------------------------------------------------------

    def position(self):
        return concat([p.detach().reshape([-1]) for p in self._parameter_list])

    def move_to(self, x) -> None:
        start = 0
        for p in self._parameter_list:
            p.set_value(x[start : start + p.size].reshape(p.shape))
            start += p.size

    def gradient(self):
        """The gradient, clipped and decayed, with zeros for a parameter that has none."""
        known = {p: g for group in self._param_groups for p, g in self._gradients(group)}
        return concat(
            [known.get(p, zeros_like(p)).detach().reshape([-1]) for p in self._parameter_list]
        )

    def evaluate(self, closure):
        """(loss, gradient) at the parameters' values."""
        with Recording(True):
            loss = closure()
        with Recording(False):
            return float(loss), self.gradient()

    # ---- the method --------------------------------------------------------------------------

    def direction(self, g):
        """-H·g by the two loops over the history."""
        if not self.history:
            return -g
        q, alphas = -g, []
        for s, y in reversed(self.history):
            alphas.append(dot(s, q) / dot(y, s))
            q = q - alphas[-1] * y
        s, y = self.history[-1]
        r = q * (dot(y, s) / dot(y, y))
        for (s, y), alpha in zip(self.history, reversed(alphas)):
            r = r + s * (alpha - dot(y, r) / dot(y, s))
        return r

    def remember(self, g) -> None:
        """Add the last step to the history, if the loss curved upwards along it."""
        if self.before is None:
            return
        s, earlier = self.before
        y = g - earlier
        if dot(y, s) > 1e-10:
            self.history = [*self.history, (s, y)][-self.history_size :]

    def step(self, closure=None):
        """Up to `max_iter` iterations; returns the loss before the first."""
        if closure is None:
            raise type_error(
                "LBFGS.step needs a closure: it evaluates the loss more than once",
                hint="def closure(): opt.clear_grad(); loss = ...; loss.backward(); return loss",
            )
        self.evaluations = 1
        first, g = self.evaluate(closure)
        loss = first
        with Recording(False):
            for left in reversed(range(self.max_iter)):
                if largest(g) <= self.tolerance_grad:
                    break
                self.remember(g)
                d = self.direction(g)
                if dot(g, d) > -self.tolerance_change:
                    break
                moved = d * self.move_along(d, loss, g, closure)
                self.before = (moved, g)
                if not left:
                    break
                previous = loss
                loss, g = self.evaluate(closure)
                self.evaluations += 1
                change = min(largest(moved), abs(loss - previous))
                if change <= self.tolerance_change or self.evaluations >= self.max_eval:
                    break
        return Tensor(first)

    def move_along(self, d, loss: float, g, closure) -> float:
        """Move along d; returns how far."""
        x, t = self.position(), self.get_lr()
        if self.before is None:
            t *= min(1.0, 1.0 / float(g.abs().sum()))
        if self.line_search_fn == "strong_wolfe":
            t = self.line_search_step(x, d, loss, g, closure) or t
        self.move_to(x + t * d)
        return t

    def line_search_step(self, x, d, loss: float, g, closure):
        """How far to go by the strong Wolfe conditions; None if the search finds nothing."""
        from scipy.optimize import line_search  # takes a while to import

        seen: dict[bytes, tuple] = {}

        def at(place):
            key = place.tobytes()
            if key not in seen:
                self.move_to(Tensor(place, x.dtype, x.place))
                self.evaluations += 1
                value, gradient = self.evaluate(closure)
                seen[key] = value, gradient.numpy().astype("float64")
            return seen[key]

        wide = [v.numpy().astype("float64") for v in (x, d, g)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns when it finds nothing
            return line_search(
                lambda p: at(p)[0], lambda p: at(p)[1], *wide, old_fval=loss, maxiter=25
            )[0]

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict:
        """The history and the last step, as tensors."""
        return {"history": [list(pair) for pair in self.history], "before": self.before}

    def set_state_dict(self, state_dict: dict) -> None:
        """Load the result of `state_dict`; raises ValueError if it is of another optimizer."""
        if state_dict.keys() != {"history", "before"}:
            raise ValueError("this is no state dict of LBFGS: it has history and before")
        self.history = [tuple(pair) for pair in state_dict["history"]]
        self.before = state_dict["before"] and tuple(state_dict["before"])

    set_dict = load_state_dict = set_state_dict


def dot(a, b) -> float:
    return float((a * b).sum())


def largest(x) -> float:
    return float(x.abs().max())
