enum { BLOCK = 16 * LANES };
PARALLEL
for (int64_t row = 0; row < LINES; row++) {
    const E *x = in0 + row * LENGTH;
    T best = LOAD(x[0]);
    int64_t block = 0;
    for (int64_t first = 0; first < LENGTH && best == best; first += BLOCK) {
        const int64_t n = LENGTH - first < BLOCK ? LENGTH - first : BLOCK;
        T lane[LANES];
        int strange[LANES];
        for (int k = 0; k < LANES; k++) lane[k] = best, strange[k] = 0;
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES)
            for (int k = 0; k < LANES; k++) {
                const T value = LOAD(x[first + i + k]);
                lane[k] = value SIGN lane[k] ? value : lane[k];
                strange[k] |= value != value;
            }
        for (; i < n; i++) {
            const T value = LOAD(x[first + i]);
            lane[0] = value SIGN lane[0] ? value : lane[0];
            strange[0] |= value != value;
        }
        T better = best;
        int any = 0;
        for (int k = 0; k < LANES; k++) {
            better = lane[k] SIGN better ? lane[k] : better;
            any |= strange[k];
        }
        if (any)
            for (i = 0; i < n; i++) if (LOAD(x[first + i]) != LOAD(x[first + i])) better = LOAD(x[first + i]);
        if (better != best) best = better, block = first;
    }
    int64_t at = block;
    if (best == best) while (LOAD(x[at]) != best) at++;
    else while (LOAD(x[at]) == LOAD(x[at])) at++;
    out0[row] = at;
}
