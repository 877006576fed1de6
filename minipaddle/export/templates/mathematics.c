static inline double own_fabs(double x) { return __builtin_fabs(x); }

static inline double own_copysign(double x, double y) { return __builtin_copysign(x, y); }

static inline double own_sqrt(double x) { return __builtin_sqrt(x); }

static inline float own_sqrtf(float x) { return __builtin_sqrtf(x); }

static inline double own_fmax(double x, double y) { return x != x ? y : y > x ? y : x; }

static inline double own_fmin(double x, double y) { return x != x ? y : y < x ? y : x; }

static inline double own_rint(double x)  /* beside 2^52 no fraction fits */
{
    const double big = 0x1p52, a = own_fabs(x), y = (a + big) - big;
    return a < big ? own_copysign(y, x) : x;
}

static inline double own_floor(double x)
{
    const double y = own_rint(x);
    return y > x ? y - 1 : y;
}

static inline double own_ceil(double x)
{
    const double y = own_rint(x);
    return own_copysign(y < x ? y + 1 : y, x);
}

static inline double own_trunc(double x) { return own_copysign(own_floor(own_fabs(x)), x); }

static inline double own_power_of_2(int64_t n)  /* -1022 <= n <= 1023 */
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline double own_exp(double x)  /* 2^n e^r, |r| <= log(2) / 2: the series of e^r */
{
    double y = x < -746 ? -746 : x;
    y = y > 710 ? 710 : y;
    const double n = y == y ? own_rint(y * 1.4426950408889634) : 0;
    const double r = (y - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    double p = 1.6059043836821613e-10;
    p = p * r + 2.08767569878681e-09;
    p = p * r + 2.505210838544172e-08;
    p = p * r + 2.755731922398589e-07;
    p = p * r + 2.7557319223985893e-06;
    p = p * r + 2.48015873015873e-05;
    p = p * r + 0.0001984126984126984;
    p = p * r + 0.001388888888888889;
    p = p * r + 0.008333333333333333;
    p = p * r + 0.041666666666666664;
    p = p * r + 0.16666666666666666;
    p = p * r + 0.5;
    p = 1 + (r + p * (r * r));
    const int64_t half = (int64_t)n / 2;
    return p * own_power_of_2(half) * own_power_of_2((int64_t)n - half);
}

static inline double own_split(double x, double *n)  /* x = m 2^n, sqrt(1/2) <= m < sqrt(2) */
{
    const int small = x < 0x1p-1022;
    x = small ? x * 0x1p54 : x;
    uint64_t bits;
    memcpy(&bits, &x, sizeof x);
    const int64_t e = (int64_t)(bits >> 52 & 0x7ff) - 1023;
    bits = (bits & 0xfffffffffffffULL) | 0x3ffULL << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    const int more = m >= 1.4142135623730951;
    *n = (double)(e + more - (small ? 54 : 0));
    return more ? m / 2 : m;
}

static inline double own_log_near_1(double m)  /* f = (m - 1) / (m + 1): 2 (f + f^3 / 3 + ...) */
{
    const double f = (m - 1) / (m + 1), s = f * f;
    double p = 1.0 / 23;
    p = p * s + 1.0 / 21;
    p = p * s + 1.0 / 19;
    p = p * s + 1.0 / 17;
    p = p * s + 1.0 / 15;
    p = p * s + 1.0 / 13;
    p = p * s + 1.0 / 11;
    p = p * s + 1.0 / 9;
    p = p * s + 1.0 / 7;
    p = p * s + 1.0 / 5;
    p = p * s + 1.0 / 3;
    return 2 * (f + f * (s * p));
}

static inline double own_outside_log(double x, double y)  /* y, but for 0, inf, NaN and below 0 */
{
    return x > 0 ? (x <= 0x1.fffffffffffffp1023 ? y : x) : x == 0 ? -(double)__builtin_inff() :
           (double)__builtin_nanf("");
}

static inline double own_log(double x)
{
    double n;
    const double y = own_log_near_1(own_split(x, &n));
    return own_outside_log(x, n * 0x1.62e42feep-1 + (y + n * 0x1.a39ef35793c76p-33));
}

static inline double own_log2(double x)
{
    double n;
    const double y = own_log_near_1(own_split(x, &n));
    return own_outside_log(x, n + y * 1.4426950408889634);
}

static inline double own_log10(double x) { return own_log(x) * 0.4342944819032518; }

static inline double own_log1p(double x)  /* the rounding of 1 + x cancels (Goldberg 1991) */
{
    const double u = 1 + x;
    return u == 1 ? x : u > 1e300 || !(u > 0) ? own_log(u) : own_log(u) * (x / (u - 1));
}

static inline double own_expm1(double x)  /* likewise (Kahan) */
{
    const double u = own_exp(x), less = u - 1;
    return u == 1 ? x : less == -1 || u > 1e300 || u != u ? less : less * (x / own_log(u));
}

static inline double own_tanh(double x)
{
    const double a = own_fabs(x), t = own_expm1(2 * a);
    return own_copysign(a > 22 ? 1 : t / (t + 2), x);
}

static inline float own_tanhf(float x)  /* x - x^3 / 3 where 1 - e^-2x would cancel */
{
    const double a = own_fabs((double)x), e = own_exp(-2 * a);
    const double y = a < 1e-3 ? a - a * a * a / 3 : (1 - e) / (1 + e);
    return (float)own_copysign(y, (double)x);
}

static inline double own_sinh(double x)
{
    const double a = own_fabs(x), t = own_expm1(a), e = own_exp(a / 2);
    return own_copysign(a > 30 ? 0.5 * e * e : (t + t / (t + 1)) / 2, x);
}

static inline double own_cosh(double x)
{
    const double e = own_exp(own_fabs(x) / 2);
    return 0.5 * e * e + 0.5 / e / e;
}

/* x - n pi/2 in three parts of pi/2, the first two of 33 bits: exact for |x| up to a million */
static inline double own_quadrant(double x, int64_t *q)
{
    const double n = own_fabs(x) < 0x1p52 ? own_rint(x * 0.6366197723675814) : 0;
    *q = (int64_t)n & 3;
    return ((x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a6p-34) - n * 0x1.3198a2e037073p-69;
}

static inline double own_sin_near_0(double x)
{
    const double s = x * x;
    double p = 2.8114572543455206e-15;
    p = p * s - 7.647163731819816e-13;
    p = p * s + 1.6059043836821613e-10;
    p = p * s - 2.505210838544172e-08;
    p = p * s + 2.7557319223985893e-06;
    p = p * s - 0.0001984126984126984;
    p = p * s + 0.008333333333333333;
    p = p * s - 0.16666666666666666;
    return x + x * (s * p);
}

static inline double own_cos_near_0(double x)
{
    const double s = x * x;
    double p = 4.779477332387385e-14;
    p = p * s - 1.1470745597729725e-11;
    p = p * s + 2.08767569878681e-09;
    p = p * s - 2.755731922398589e-07;
    p = p * s + 2.48015873015873e-05;
    p = p * s - 0.001388888888888889;
    p = p * s + 0.041666666666666664;
    p = p * s - 0.5;
    return 1 + s * p;
}

static inline double own_turn(double x, int64_t by)  /* sin(x + by pi/2) */
{
    int64_t q;
    const double r = own_quadrant(x, &q), y = (q + by) & 1 ? own_cos_near_0(r) : own_sin_near_0(r);
    return (q + by) & 2 ? -y : y;
}

static inline double own_sin(double x)
{
    return x == 0 ? x : x - x == 0 ? own_turn(x, 0) : x - x;
}

static inline double own_cos(double x) { return x - x == 0 ? own_turn(x, 1) : x - x; }

static inline double own_tan(double x) { return own_sin(x) / own_cos(x); }

static inline double own_atan(double x)  /* the angle halved twice, then the series */
{
    const double a = own_fabs(x), t = a > 1 ? 1 / a : a;
    const double u = t / (1 + own_sqrt(1 + t * t)), v = u / (1 + own_sqrt(1 + u * u)), s = v * v;
    double p = -1.0 / 23;
    p = p * s + 1.0 / 21;
    p = p * s - 1.0 / 19;
    p = p * s + 1.0 / 17;
    p = p * s - 1.0 / 15;
    p = p * s + 1.0 / 13;
    p = p * s - 1.0 / 11;
    p = p * s + 1.0 / 9;
    p = p * s - 1.0 / 7;
    p = p * s + 1.0 / 5;
    p = p * s - 1.0 / 3;
    const double y = 4 * (v + v * (s * p));
    return own_copysign(a > 1 ? 1.5707963267948966 - y : y, x);
}

static inline double own_atan2(double y, double x)
{
    const double pi = 3.141592653589793, a = own_fabs(y), b = own_fabs(x);
    const double big = a > b ? a : b, small = a > b ? b : a;
    const double t = big == 0 ? 0 : small == big ? 0.7853981633974483 : own_atan(small / big);
    const double turned = a > b ? pi / 2 - t : t;
    const double whole = own_copysign(1, x) < 0 ? pi - turned : turned;
    return x != x || y != y ? x + y : own_copysign(whole, y);
}

static inline double own_asin(double x) { return own_atan2(x, own_sqrt((1 - x) * (1 + x))); }

static inline double own_acos(double x) { return own_atan2(own_sqrt((1 - x) * (1 + x)), x); }

static inline double own_asinh(double x)
{
    const double a = own_fabs(x), y = own_log1p(a + a * a / (1 + own_sqrt(a * a + 1)));
    return own_copysign(a > 1e150 ? own_log(a) + 0.6931471805599453 : y, x);
}

static inline double own_acosh(double x)
{
    const double t = x - 1, y = own_log1p(t + own_sqrt(t * (x + 1)));
    return x > 1e150 ? own_log(x) + 0.6931471805599453 : y;
}

static inline double own_atanh(double x)
{
    const double a = own_fabs(x);
    return own_copysign(0.5 * own_log1p(2 * a / (1 - a)), x);
}

static inline double own_hypot(double x, double y)
{
    const double a = own_fabs(x), b = own_fabs(y), big = own_fmax(a, b), t = own_fmin(a, b) / big;
    if (big > 0x1.fffffffffffffp1023) return big;
    return big == 0 ? a + b : big * own_sqrt(1 + t * t) + (a - a) * (b - b);
}

static inline double own_fmod(double x, double y)  /* long division: each difference is exact */
{
    double a = own_fabs(x), b = own_fabs(y), t = b;
    if (!(a - a == 0) || b != b || b == 0) return (double)__builtin_nanf("");
    if (b > 0x1.fffffffffffffp1023) return x;
    while (t <= a / 2) t *= 2;
    for (; t >= b; t /= 2) a = a >= t ? a - t : a;
    return own_copysign(a, x);
}

static inline double own_pow(double x, double y)  /* the error of y log(x) grows with its size */
{
    const double a = own_fabs(x), whole = own_rint(y);
    const int odd = own_fabs(y) < 0x1p53 && whole - 2 * own_floor(whole / 2) != 0;
    if (y == 0 || x == 1 || (x == -1 && y - y != 0 && y == y)) return 1;
    if (y != y) return y;
    const double size = a == 0 ? (y > 0 ? 0 : (double)__builtin_inff()) : own_exp(y * own_log(a));
    if (own_copysign(1, x) > 0 || x != x) return size;
    if (whole != y && a != 0 && a - a == 0) return (double)__builtin_nanf("");
    return odd && whole == y ? -size : size;
}

static inline double own_erf_series(double x)  /* 2 / sqrt(pi) e^-xx (x + 2 x^3 / 3 + ...) */
{
    double term = x, sum = x;
    for (int k = 1; k < 80; k++) sum += term *= 2 * x * x / (2 * k + 1);
    return 1.1283791670955126 * own_exp(-x * x) * sum;
}

static inline double own_erfc_fraction(double x)  /* e^-xx / sqrt(pi) / (x + 1/2 / (x + 1 / ...)) */
{
    double f = x;
    for (int k = 120; k > 0; k--) f = x + 0.5 * k / f;
    return 0.5641895835477563 * own_exp(-x * x) / f;
}

static inline double own_erf(double x)
{
    const double a = own_fabs(x);
    if (!(a < 6)) return x != x ? x : own_copysign(1, x);
    return own_copysign(a < 3 ? own_erf_series(a) : 1 - own_erfc_fraction(a), x);
}

static inline double own_erfc(double x)
{
    if (!(x > 2)) return x < -6 ? 2 : x != x ? x : 1 - own_erf(x);
    return x > 28 ? 0 : own_erfc_fraction(x);
}

static inline double own_lgamma(double x)  /* Stirling's series from 10 on */
{
    if (x != x || own_fabs(x) > 0x1.fffffffffffffp1023) return x * x;
    if (x <= 0 && own_floor(x) == x) return (double)__builtin_inff();
    const double pi = 3.141592653589793, sine = x < 0.5 ? own_fabs(own_sin(pi * x)) : 1;
    double z = x < 0.5 ? 1 - x : x, product = 1;
    for (; z < 10; z += 1) product *= z;
    const double s = 1 / (z * z);
    double p = -691.0 / 360360;
    p = p * s + 1.0 / 1188;
    p = p * s - 1.0 / 1680;
    p = p * s + 1.0 / 1260;
    p = p * s - 1.0 / 360;
    p = p * s + 1.0 / 12;
    const double y = (z - 0.5) * own_log(z) - z + 0.9189385332046727 + p / z - own_log(product);
    return x < 0.5 ? own_log(pi / sine) - y : y;
}
