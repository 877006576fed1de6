T most = 0;
for (int64_t i = 0; i < n; i++) most = ABS(w[i]) > most || w[i] != w[i] ? ABS(w[i]) : most;
for (int64_t t = 0; t < n; t++) w[t] = ABS(w[t]) > (T)RCOND * most ? 1 / w[t] : 0;
for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) own[j] = 0;
    for (int64_t t = 0; t < n; t++)
        for (int64_t j = 0; j < n; j++) own[j] += a[t * n + i] * w[t] * a[t * n + j];
    for (int64_t j = 0; j < n; j++) out0[(b * n + i) * n + j] = STORE(own[j]);
}
