const int64_t n = N, room = FREE, places = 3 + 5 * N;
for (int64_t b = 0; b < COUNT; b++) {
    BYCOLUMNS(in0 + b * n * n, a, n, n);
    CALL syevd("v", HALF, &n, a, &n, w, own, &room, whole, &places, &info);
    if (info) GIVE_UP
    RESULT
}
