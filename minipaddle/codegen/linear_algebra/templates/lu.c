const int64_t m = M, n = N;
for (int64_t b = 0; b < COUNT; b++) {
    for (int64_t i = 0; i < m * n; i++) a[i] = LOAD(in0[b * m * n + i]);
    for (int64_t k = 0; k < K; k++) {
        int64_t p = k;
        for (int64_t i = k + 1; i < m; i++) {
            const T x = ABS(a[i * n + k]), best = ABS(a[p * n + k]);
            if (x > best || (x != x && best == best)) p = i;
        }
        out1[b * K + k] = p + 1;
        for (int64_t j = 0; j < n && p != k; j++) {
            const T x = a[k * n + j];
            a[k * n + j] = a[p * n + j];
            a[p * n + j] = x;
        }
        const T pivot = a[k * n + k] == 0 ? 1 : a[k * n + k];
        for (int64_t i = k + 1; i < m; i++) {
            const T factor = a[i * n + k] = a[i * n + k] / pivot;
            for (int64_t j = k + 1; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
        }
    }
    for (int64_t i = 0; i < m * n; i++) out0[b * m * n + i] = STORE(a[i]);
}
