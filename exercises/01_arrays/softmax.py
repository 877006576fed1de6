"""Scores to probabilities, without overflow.

Write `softmax(m, x, *, axis=-1)`: e^x / Σ e^x, the sum taken along `axis`. The result has the shape
of x; along `axis` its numbers are positive and sum to 1.

- It must be right for scores of any size: for [1000, 1000] it is [0.5, 0.5], although e^1000 is
  more than a float can hold. What you subtract from all scores *of one sum* cancels out.
- `m` is the array module, NumPy or CuPy: take all you need from `m` and from x's own methods, so
  that the same lines run on a GPU.
- x belongs to somebody else: do not write into it.

    softmax(numpy, [[0, log 3], [1000, 1000]])  ->  [[0.25, 0.75], [0.5, 0.5]]

This is the body of the engine's operator. Its derivative is written elsewhere and stays as it is;
half precision has been widened to float32 before your body is called.
Source: Blanchard, Higham and Higham, "Accurately computing the log-sum-exp and softmax functions",
IMA Journal of Numerical Analysis (2021).
"""


def softmax(m, x, *, axis=-1):
    """e^x / Σ e^x along `axis`, for x of any shape and any size of its numbers."""
    raise NotImplementedError
