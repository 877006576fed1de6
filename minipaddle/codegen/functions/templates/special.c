#define COUNT(c) (int)(sizeof(c) / sizeof *(c))

static inline double gammaln_double(double x)
{
    return x - x == 0 ? lgamma(x) : x;
}

static inline double erfinv_double(double x)
{
    const double a = fabs(x), rest = 1 - a;
    if (!(rest > 0)) return rest == 0 ? copysign((double)INFINITY, x) : (double)NAN;
    const double low[] = ERFINV_LOW;
    const double high[] = ERFINV_HIGH;
    const double w = -log(rest * (1 + a)), t = w < 4 ? w : sqrt(w), *c = w < 4 ? low : high;
    double y = 0;
    for (int k = 0; k < COUNT(low); k++) y = y * t + c[k];  /* as in Giles (2010) */
    y *= a;  /* within 3e-6; then one step of Householder, near 1 by what is exact there */
    const double off = a < 0.5 ? erf(y) - a : rest - erfc(y);
    const double step = off * exp(y * y) * (0.5 * sqrt(PI));
    y -= step / (1 + step * (y - step * (1 + y * y) / 3));
    return copysign(y, x);
}

static inline double bessel_double(double n, double x)  /* e^-x I(x) of order n = 0, 1; x >= 0 */
{
    double y = 1, term = 1;
    if (x < 20) {  /* 10.25.2: all terms are positive */
        for (double k = 1; term > 1e-17 * y; k++) y += term *= 0.25 * x * x / (k * (k + n));
        return (n == 0 ? 1 : x / 2) * exp(-x) * y;
    }
    for (double k = 1; fabs(term) > 1e-17; k++)  /* 10.40.1 */
        y += term *= ((2 * k - 1) * (2 * k - 1) - 4 * n) / (8 * k * x);
    return y / (sqrt(2 * PI) * sqrt(x));
}

static inline double i0e_double(double x)
{
    return bessel_double(0, fabs(x));
}

static inline double i1e_double(double x)
{
    const double y = bessel_double(1, fabs(x));
    return x < 0 ? -y : y;
}

static inline double positive_digamma_double(double x)
{
    if (x > 1e17) return log(x);
    /* digamma(x) - digamma(z), for its root z: nothing cancels, all terms have the sign of x - z.
     * 5.5.2 ten times, then the differences of the terms of 5.11.2. */
    const double z = 1.4616321449683622, d = x - z - 9.549995429965697e-17;
    const double a = x + 10, b = z + 10, u = 1 / (a * a), v = 1 / (b * b);
    const double c[] = DIGAMMA;
    double sum = 0.5 / (a * b), p = 0, q = 0;  /* q = (p(u) - p(v)) / (u - v) */
    for (int k = 0; k < 5; k++) {  /* two at a time: 1 / s + 1 / t */
        const double s = (x + k) * (z + k), t = (x + 9 - k) * (z + 9 - k);
        sum += (s + t) / (s * t);
    }
    for (int k = COUNT(c); k-- > 0;) {
        q = q * v + p;
        p = p * u + c[k];
    }
    return d * (sum + (a + b) * u * v * (q * v + p)) + log1p(d / b);
}

static inline double digamma_double(double x)
{
    if (x > 0 || x != x) return positive_digamma_double(x);
    const double r = x - rint(x);  /* 5.5.4 */
    if (r == 0) return x == 0 ? -1 / x : (double)NAN;
    return positive_digamma_double(1 - x) - PI / tan(PI * r);
}

static inline double positive_zeta_double(double s, double q)  /* Euler-Maclaurin: 25.11.5 */
{
    const double c[] = ZETA;
    double sum = 0;
    for (; q < s + 10; q += 1) sum += pow(q, -s);
    double y = 1 / (s - 1) + 0.5 / q, factor = s / q / q;
    for (int k = 0; k < COUNT(c); k++) {
        y += c[k] * factor;
        factor *= (s + 2 * k + 1) / q * ((s + 2 * k + 2) / q);
    }
    return sum + pow(q, 1 - s) * y;
}

static inline double zeta_double(double s, double q)  /* of Hurwitz; s is whole where q < 0 */
{
    if (q > 0 || q != q) return positive_zeta_double(s, q);
    const double whole = floor(-q), t = -q - whole, sign = fmod(s, 2) == 0 ? 1 : -1;
    if (!(t > 0)) return (double)INFINITY;
    const double below = positive_zeta_double(s, t) - positive_zeta_double(s, 1 - q);
    return positive_zeta_double(s, 1 - t) + sign * below;
}

static inline double gamma_density_double(double a, double x)  /* x^a e^-x / gamma(a + 1) */
{
    if (a < 20) return exp(a * log(x) - x - lgamma(a + 1));
    const double c[] = STIRLING;
    double rest = 0;  /* of log gamma: 5.11.1 */
    for (int k = COUNT(c); k-- > 0;) rest = rest / (a * a) + c[k];
    return exp(a * log(x / a) + (a - x) - rest / a) / sqrt(2 * PI * a);
}

static inline double lower_gamma_double(double a, double x)  /* 8.11.4 */
{
    double term = 1, sum = 1;
    for (double k = 1; term > 1e-17 * sum; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return gamma_density_double(a, x) * sum;
}

static inline double upper_gamma_double(double a, double x)  /* 8.9.2 */
{
    const double density = gamma_density_double(a, x);
    if (density == 0) return 0;
    double b = x + 1 - a, p = 1, q = b, p_before = 0, q_before = 1;
    for (double k = 1; k < 500 && fabs(p * q_before - p_before * q) > 3e-16 * p * q_before; k++) {
        const double n = k * (a - k), big = q < 1e100 ? 1 : 1e-100;
        b += 2;
        const double p_next = (b * p + n * p_before) * big, q_next = (b * q + n * q_before) * big;
        p_before = p * big;
        q_before = q * big;
        p = p_next;
        q = q_next;
    }
    return density * a * p / q;
}

static inline double small_gamma_double(double a, double x)  /* the upper one: 8.7.3 */
{
    const double one = a + 1, lost = a - (one - 1), slope = -0.5772156649015329;
    const double power = a * log(x) - (lgamma(one) + slope * lost);
    double term = 1, sum = 0;
    for (double k = 1; fabs(term) > 1e-18; k++) {
        term *= -x / k;
        sum += term / (a + k);
    }
    return -expm1(power) - exp(power) * a * sum;
}

static inline double uniform_gamma_double(double a, double x, double sign)
{
    /* 8.12.3 with the sums of Gil, Segura, Temme (2012), for large a near x. First
     * half = m - log(1 + m) = eta^2 / 2, by the series of atanh(r). */
    const double m = (x - a) / a, r = m / (2 + m);
    const double c[] = UNIFORM;
    double half = 0, sum = 0, s = 0, above = 0;
    for (int k = 33; k >= 3; k -= 2) half = half * (r * r) + 1.0 / k;
    half = r * (m - 2 * r * r * half);
    const double eta = copysign(sqrt(2 * half), m);
    for (int k = COUNT(c); k-- > 1;) {
        const double next = c[k] + (k + 1) / a * above;
        above = s;
        s = next;
        sum = sum * eta + s;
    }
    const double rest = exp(-a * half) / sqrt(2 * PI * a) * sum / (1 + above / a);
    return 0.5 * erfc(sign * eta * sqrt(a / 2)) + sign * rest;
}

static inline double gamma_part_double(double a, double x, bool upper)
{
    if (!(a >= 0 && x >= 0)) return (double)NAN;
    if (a == 0 || x == 0 || a - a != 0 || x - x != 0)
        return a == x ? (double)NAN : (a < x) != upper;
    if (a >= 20 && fabs(x - a) < 0.5 * a) return uniform_gamma_double(a, x, upper ? 1 : -1);
    const bool above = x > 1.1 && x > a;
    if (upper && x <= 1.1 && a < (x < 0.5 ? -0.4 / log(x) : 1.1 * x))
        return small_gamma_double(a, x);
    double y = above ? upper_gamma_double(a, x) : lower_gamma_double(a, x);
    y = y > 1 ? 1 : y;
    return above == upper ? y : 1 - y;
}

static inline double gammainc_double(double a, double x)
{
    return gamma_part_double(a, x, false);
}

static inline double gammaincc_double(double a, double x)
{
    return gamma_part_double(a, x, true);
}
