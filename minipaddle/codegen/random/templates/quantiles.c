static inline double betainc_double(double a, double b, double x)  /* 8.17.22, by Lentz's rule */
{
    if (!(x > 0 && x < 1)) return x >= 1 ? 1 : x <= 0 ? 0 : x;
    if (x > (a + 1) / (a + b + 2)) return 1 - betainc_double(b, a, 1 - x);
    const double ends = gammaln_double(a + b) - gammaln_double(a) - gammaln_double(b);
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), y = d;
    for (int k = 1; k < 1000; k++) {
        const double even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        y *= c * d;
        const double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        y *= c * d;
        if (fabs(c * d - 1) < 1e-16) break;
    }
    return y * exp(a * log(x) + b * log1p(-x) + ends) / a;
}

static inline double poisson_quantile_double(double u, double mean)
{
    double low = -1, high = ceil(mean + 10 * sqrt(mean) + 40);
    while (high - low > 1) {
        const double middle = floor((low + high) / 2);
        if (gammaincc_double(middle + 1, mean) > u) high = middle;
        else low = middle;
    }
    return high;
}

static inline double binomial_quantile_double(double u, double n, double p)
{
    double low = -1, high = n;
    while (high - low > 1) {
        const double k = floor((low + high) / 2);
        if (betainc_double(n - k, k + 1, 1 - p) > u) high = k;
        else low = k;
    }
    return high;
}

static inline double gamma_quantile_double(double u, double a)  /* Newton's rule for log x */
{
    if (!(u > 0 && u < 1 && a > 0)) return u == 0 ? 0 : u == 1 ? INFINITY : NAN;
    double t = (log(u) + gammaln_double(a + 1)) / a, low = t - 1, high = log(a + 40 * sqrt(a) + 800);
    t = t < high ? t : (low = -40, log(a));
    for (int k = 0; k < 200; k++) {
        const double x = exp(t), miss = gammainc_double(a, x) - u;
        if (miss > 0) high = t;
        else low = t;
        double next = t - miss / (a * gamma_density_double(a, x));
        next = next > low && next < high ? next : (low + high) / 2;
        if (fabs(next - t) <= 1e-15 * (1 + fabs(t))) return exp(next);
        t = next;
    }
    return exp(t);
}
