const int64_t m = M, n = N, p = P, q = R, room = FREE;
for (int64_t b = 0; b < COUNT; b++) {
    BYCOLUMNS(in0 + b * m * n, a, m, n);
    CALL gesdd(JOB, &m, &n, a, &m, s, u, &m, v, &q, own, &room, places, &info);
    if (info) GIVE_UP
    RESULT
}
