"""Weight decay as a term of the loss: it adds to a parameter's gradient."""

__all__ = ["L1Decay", "L2Decay"]


class WeightDecayRegularizer:
    """A term `coeff · penalty(p)` of the loss; `gradient` is its derivative."""

    def __init__(self, coeff: float = 0.0):
        self.coeff = float(coeff)

    def gradient(self, p):
        """The derivative of the term with respect to the parameter `p`."""
        raise NotImplementedError(f"{type(self).__name__} defines no gradient(p)")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.coeff})"


class L1Decay(WeightDecayRegularizer):
    """coeff · Σ|p|: it pulls every weight towards zero at the same speed.

    >>> paddle.regularizer.L1Decay(0.5).gradient(paddle.to_tensor([3.0, -4.0])).tolist()
    [0.5, -0.5]
    """

    def gradient(self, p):
        return self.coeff * p.sign()


class L2Decay(WeightDecayRegularizer):
    """coeff/2 · Σp²: it pulls every weight towards zero in proportion to its size.

    >>> paddle.regularizer.L2Decay(0.5).gradient(paddle.to_tensor([3.0, -4.0])).tolist()
    [1.5, -2.0]
    """

    def gradient(self, p):
        return self.coeff * p
