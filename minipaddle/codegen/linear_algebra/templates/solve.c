const int64_t n = M, columns = N;
for (int64_t b = 0; b < COUNT; b++) {
    BYCOLUMNS(in0 + LEFT, a, n, n);
    BYCOLUMNS(in1 + RIGHT, y, n, columns);
    CALL gesv(&n, &columns, a, &n, pivots, y, &n, &info);
    if (info) GIVE_UP
    BYROWS(y, out0 + b * n * columns, n, columns);
}
