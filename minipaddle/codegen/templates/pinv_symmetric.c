T most = 0;
for (int64_t i = 0; i < n; i++) most = ABS(w[i]) > most || w[i] != w[i] ? ABS(w[i]) : most;
for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
        T sum = 0;
        for (int64_t t = 0; t < n; t++) {
            const T scale = ABS(w[t]) > (T)RCOND * most ? 1 / w[t] : 0;
            sum += a[t * n + i] * scale * a[t * n + j];
        }
        out0[(b * n + i) * n + j] = STORE(sum);
    }
