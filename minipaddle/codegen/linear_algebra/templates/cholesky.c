const int64_t n = N;
for (int64_t b = 0; b < COUNT; b++) {
    BYCOLUMNS(in0 + b * n * n, a, n, n);
    CALL potrf("l", &n, a, &n, &info);
    if (info) GIVE_UP
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < j; i++) a[j * n + i] = 0;
    BYROWS(a, out0 + b * n * n, n, n);
}
