static inline $T floor_divide_$T($T x, $T y)  /* by 0: 0, as in NumPy */
{
    if (y == 0) return 0;
    if (y == -1) return ($T)-(uint64_t)x;  /* a processor traps at the smallest number */
    $T q = x / y;
    return q - (q * y != x && (x < 0) != (y < 0));
}

static inline $T remainder_$T($T x, $T y)  /* has the sign of y */
{
    if (y == 0 || y == -1) return 0;
    $T r = x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static inline $T power_$T($T x, $T n)
{
    $T y = 1;
    for (; n > 0; n >>= 1, x *= x)
        if (n & 1) y *= x;
    return y;
}

static inline $T gcd_$T($T x, $T y)
{
    uint64_t a = (uint64_t)x, b = (uint64_t)y;
    a = x < 0 ? -a : a;
    b = y < 0 ? -b : b;
    while (b != 0) {
        const uint64_t r = a % b;
        a = b;
        b = r;
    }
    return ($T)a;
}

static inline $T lcm_$T($T x, $T y)
{
    const $T d = gcd_$T(x, y), m = d == 0 ? 0 : x / d * y;
    return (x < 0) != (y < 0) ? -m : m;
}
