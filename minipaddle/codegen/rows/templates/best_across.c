enum { COUNT = 512 };
const int64_t blocks = (INNER + COUNT - 1) / COUNT;
PARALLEL
for (int64_t block = 0; block < OUTER * blocks; block++) {
    const int64_t first = block % blocks * COUNT;
    const int64_t count = INNER - first < COUNT ? INNER - first : COUNT;
    const E *x = in0 + block / blocks * LENGTH * INNER + first;
    T best[COUNT];
    PLACE place[COUNT];
    for (int64_t k = 0; k < count; k++) best[k] = LOAD(x[k]), place[k] = 0;
    for (int64_t i = 1; i < LENGTH; i++)
        for (int64_t k = 0; k < count; k++) {
            const T value = LOAD(x[i * INNER + k]);
            const int wins = (value SIGN best[k]) | ((value != value) & (best[k] == best[k]));
            best[k] = wins ? value : best[k];
            place[k] = wins ? (PLACE)i : place[k];
        }
    for (int64_t k = 0; k < count; k++) out0[block / blocks * INNER + first + k] = place[k];
}
