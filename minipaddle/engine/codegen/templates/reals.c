static inline $T remainder_$T($T x, $T y)  /* has the sign of y */
{
    $T r = fmod$f(x, y);
    if (r == 0) return copysign$f(($T)0, y);
    return (r < 0) != (y < 0) ? r + y : r;
}

static inline $T floor_divide_$T($T x, $T y)
{
    if (y == 0) return x / y;
    $T r = fmod$f(x, y), q = (x - r) / y;
    if (r != 0 && (r < 0) != (y < 0)) q -= 1;  /* also of 3 by -inf */
    if (q == 0) return copysign$f(($T)0, x / y);
    $T whole = floor$f(q);
    return q - whole > ($T)0.5 ? whole + 1 : whole;
}

static inline $T logaddexp_$T($T x, $T y)
{
    $T high = x >= y || x != x ? x : y, apart = x == y ? 0 : fabs$f(x - y);  /* inf - inf is nan */
    return high + log1p$f(exp$f(-apart));
}

static inline $I exponent_$T($T x)  /* of a fraction in [1/2, 1) */
{
    $I bits;
    memcpy(&bits, &x, sizeof x);
    return x == 0 ? 0 : (bits >> $MANTISSA & $EXPONENTS) - $BIAS;
}

static inline $T fraction_$T($T x)
{
    $I bits;
    memcpy(&bits, &x, sizeof x);
    bits = (bits & ~(($I)$EXPONENTS << $MANTISSA)) | ($I)$BIAS << $MANTISSA;
    $T y;
    memcpy(&y, &bits, sizeof y);
    return x == 0 ? x : y;
}

static inline $T choose_$T(bool first, $T x, $T y)  /* both are computed: GCC's vectors need it */
{
    return first ? x : y;
}
