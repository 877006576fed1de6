const int64_t n = N;
for (int64_t b = 0; b < COUNT; b++) {
    BYCOLUMNS(in0 + b * n * n, a, n, n);
    CALL getrf(&n, &n, a, &n, pivots, &info);
    T sign = 1, size = 0;
    for (int64_t i = 0; i < n && info == 0; i++) {
        const T x = a[i * n + i];
        sign = (x < 0) != (pivots[i] != i + 1) ? -sign : sign;
        size += LOG(ABS(x));
    }
    if (info > 0) sign = 0, size = -INFINITY;
    RESULT
}
