"""Elementwise operators beyond the elementary: error, gamma and Bessel functions, sinc.

Formulas of derivatives: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""

import math

from ..engine.core.op import elementwise
from ..engine.ops.elementwise import abs, exp, log, sign, where
from .angles import cos


@elementwise(result="float")
def erf(m, x):
    """Error function, 2/√π ∫₀ˣ e^(-t²) dt.

    >>> paddle.erf(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.erf(x)


erf.vjp(lambda g, x: g * (2 / math.sqrt(math.pi)) * exp(-x * x))


@elementwise(result="float")
def erfinv(m, x):
    """Inverse of the error function; nan outside [-1, 1].

    >>> paddle.erfinv(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.copysign(m.erfinv(x), x)  # SciPy has 0 for -0


erfinv.vjp(lambda g, out: g * (math.sqrt(math.pi) / 2) * exp(out * out))


@elementwise(result="float")
def lgamma(m, x):
    """log |Γ(x)|.

    >>> paddle.lgamma(paddle.to_tensor([1.0])).tolist()
    [0.0]
    """
    return m.where(m.abs(x) < 1e-30, -m.log(m.abs(x)), m.gammaln(m.where(x < -1e30, math.inf, x)))


@elementwise(result="float")
def digamma(m, x):
    """ψ(x) = Γ'(x) / Γ(x), the derivative of lgamma.

    >>> round(paddle.digamma(paddle.to_tensor(1.0)).item(), 4)
    -0.5772
    """
    return m.digamma(x)


@elementwise(result="float")
def polygamma(m, x, *, n):
    """The n-th derivative of ψ = digamma, for x > 0. Source: DLMF 5.15.

    >>> round(paddle.polygamma(paddle.to_tensor(1.0), 1).item(), 4)
    1.6449
    """
    if n == 0:
        return m.digamma(x)
    return (-1) ** (n + 1) * math.factorial(n) * m.zeta(n + 1, x)


lgamma.vjp(lambda g, x: g * digamma(x))
digamma.vjp(lambda g, x: g * polygamma(x, n=1))
polygamma.vjp(lambda g, x, n: g * polygamma(x, n=n + 1))


@elementwise(result="float")
def gammainc(m, x, y):
    """Regularised lower incomplete gamma function, ∫₀ʸ t^(x-1) e⁻ᵗ dt / Γ(x).

    >>> round(paddle.gammainc(paddle.to_tensor(1.0), paddle.to_tensor(1.0)).item(), 4)
    0.6321
    """
    return m.gammainc(x, y)


@elementwise(result="float")
def gammaincc(m, x, y):
    """Regularised upper incomplete gamma function, 1 - gammainc(x, y).

    >>> round(paddle.gammaincc(paddle.to_tensor(1.0), paddle.to_tensor(1.0)).item(), 4)
    0.3679
    """
    return m.gammaincc(x, y)


def gamma_density(x, y):
    """y^(x-1) e⁻ʸ / Γ(x), the integrand of gammainc."""
    return exp((x - 1) * log(y) - y - lgamma(x))


gammainc.vjp(y=lambda g, x, y: g * gamma_density(x, y))
gammaincc.vjp(y=lambda g, x, y: -g * gamma_density(x, y))

# ---- modified Bessel functions of the first kind: DLMF 10.25 ---------------------------------


@elementwise(result="float")
def i0(m, x):
    """Modified Bessel function of order 0.

    >>> paddle.i0(paddle.to_tensor([0.0])).tolist()
    [1.0]
    """
    return m.i0e(x) * m.exp(m.abs(x))


@elementwise(result="float")
def i0e(m, x):
    """e^-|x| i0(x).

    >>> paddle.i0e(paddle.to_tensor([0.0])).tolist()
    [1.0]
    """
    return m.i0e(x)


@elementwise(result="float")
def i1(m, x):
    """Modified Bessel function of order 1.

    >>> paddle.i1(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.i1e(x) * m.exp(m.abs(x))


@elementwise(result="float")
def i1e(m, x):
    """e^-|x| i1(x).

    >>> paddle.i1e(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.i1e(x)


def i1_over_x(i1, x):
    """i1(x) / x, which at 0 is ½."""
    at_zero = abs(x) < 1e-30
    return where(at_zero, 0.5, i1 / where(at_zero, 1.0, x))


i0.vjp(lambda g, x: g * i1(x))
i0e.vjp(lambda g, out, x: g * (i1e(x) - sign(x) * out))
i1.vjp(lambda g, out, x: g * (i0(x) - i1_over_x(out, x)))
i1e.vjp(lambda g, out, x: g * (i0e(x) - sign(x) * out - i1_over_x(out, x)))

# ---- signals ---------------------------------------------------------------------------------


@elementwise(result="float")
def sinc(m, x):
    """sin(πx) / (πx), which at 0 is 1.

    >>> paddle.sinc(paddle.to_tensor([0.0])).tolist()
    [1.0]
    """
    return m.sinc(x)


@sinc.vjp
def _(g, out, x):
    at_zero = x == 0
    slope = (cos(math.pi * x) - out) / where(at_zero, 1.0, x)
    return g * where(at_zero, 0.0, slope)
