const int64_t n = N, whole = N * N;
double norm = 0;
for (int64_t b = 0; b < COUNT; b++)
    for (int64_t j = 0; j < n; j++) {
        T sum = 0;
        for (int64_t i = 0; i < n; i++) sum += ABS(LOAD(in0[b * whole + i * n + j]));
        norm = sum > norm || sum != sum ? sum : norm;
    }
int64_t halvings = 0;
if (norm - norm == 0 && norm > 0) halvings = exponent_double(norm) + 1;
if (halvings < 0) halvings = 0;
double scale = 1;
for (int64_t k = 0; k < halvings; k++) scale *= 2;
for (int64_t b = 0; b < COUNT; b++) {
    for (int64_t i = 0; i < whole; i++) {
        a[i] = LOAD(in0[b * whole + i]) / (T)scale;
        power[i] = even[i] = i % (n + 1) == 0;
        odd[i] = 0;
    }
    double c = 1;
    for (int64_t k = 1; k <= PADE; k++) {
        c = c * (PADE - k + 1) / (k * (2 * PADE - k + 1));
        MULTIPLY(power, a, next, n);
        memcpy(power, next, whole * sizeof(T));
        for (int64_t i = 0; i < whole; i++) (k % 2 ? odd : even)[i] += (T)c * power[i];
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            a[j * n + i] = even[i * n + j] - odd[i * n + j];
            power[j * n + i] = even[i * n + j] + odd[i * n + j];
        }
    CALL gesv(&n, &n, a, &n, pivots, power, &n, &info);
    if (info) GIVE_UP
    for (int64_t k = 0; k < halvings; k++) {
        MULTIPLY(power, power, next, n);
        memcpy(power, next, whole * sizeof(T));
    }
    BYROWS(power, out0 + b * whole, n, n);
}
