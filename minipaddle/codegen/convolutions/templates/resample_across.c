static const int32_t starts[] = {STARTS};
static const int32_t places[] = {PLACES};
static const T weights[] = {WEIGHTS};
enum { COUNT = 1024 };
PARALLEL
for (int64_t row = 0; row < OUTER * TO; row++)
    for (int64_t first = 0; first < INNER; first += COUNT) {
        const int64_t i = row % TO, n = INNER - first < COUNT ? INNER - first : COUNT;
        const E *x = in0 + row / TO * LENGTH * INNER + first;
        T total[COUNT];
        for (int64_t k = 0; k < n; k++) total[k] = 0;
        for (int64_t t = starts[i]; t < starts[i + 1]; t++) {
            const E *source = x + places[t] * (int64_t)INNER;
            const T weight = weights[t];
            for (int64_t k = 0; k < n; k++) total[k] += LOAD(source[k]) * weight;
        }
        for (int64_t k = 0; k < n; k++) out0[row * INNER + first + k] = STORE(total[k]);
    }
