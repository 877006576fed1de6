const int64_t n = N, one = 1, room = FREE;
for (int64_t b = 0; b < COUNT; b++) {
    BYCOLUMNS(in0 + b * n * n, a, n, n);
    CALL geev("n", "v", &n, a, &n, real, imaginary, own, &one, v, &n, own, &room, &info);
    if (info) GIVE_UP
    for (int64_t i = 0; i < n; i++) {
        if (imaginary[i] != 0) GIVE_UP
        out0[b * n + i] = STORE(real[i]);
    }
    BYROWS(v, out1 + b * n * n, n, n);
}
