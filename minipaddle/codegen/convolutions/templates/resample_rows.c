static const int32_t starts[] = {STARTS};
static const int32_t places[] = {PLACES};
static const T weights[] = {WEIGHTS};
PARALLEL
for (int64_t row = 0; row < OUTER; row++)
    for (int64_t i = 0; i < TO; i++) {
        const E *x = in0 + row * LENGTH;
        T total = 0;
        for (int64_t t = starts[i]; t < starts[i + 1]; t++) total += LOAD(x[places[t]]) * weights[t];
        out0[row * TO + i] = STORE(total);
    }
