T most = 0;
for (int64_t i = 0; i < K; i++) most = s[i] > most || s[i] != s[i] ? s[i] : most;
for (int64_t t = 0; t < K; t++)
    for (int64_t j = 0; j < m; j++)
        u[t * m + j] = s[t] > (T)(RCOND * most) ? u[t * m + j] * (1 / s[t]) : 0;
for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < m; j++) own[j] = 0;
    for (int64_t t = 0; t < K; t++)
        for (int64_t j = 0; j < m; j++) own[j] += v[i * q + t] * u[t * m + j];
    for (int64_t j = 0; j < m; j++) out0[(b * n + i) * m + j] = STORE(own[j]);
}
