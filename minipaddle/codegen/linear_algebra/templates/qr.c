const int64_t m = M, n = N, k = K, columns = Q, first = FIRST, second = SECOND;
for (int64_t b = 0; b < COUNT; b++) {
    BYCOLUMNS(in0 + b * m * n, a, m, n);
    CALL geqrf(&m, &n, a, &m, scale, own, &first, &info);
    if (info) GIVE_UP
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < columns; i++) r[j * columns + i] = i <= j ? a[j * m + i] : 0;
    BYROWS(r, out1 + b * columns * n, columns, n);
    CALL orgqr(&m, &columns, &k, a, &m, scale, own, &second, &info);
    if (info) GIVE_UP
    BYROWS(a, out0 + b * m * columns, m, columns);
}
