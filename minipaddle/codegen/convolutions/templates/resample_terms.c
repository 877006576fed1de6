TABLES
PARALLEL
for (int64_t row = 0; row < OUTER; row++) {
    const E *x = in0 + row * LENGTH;
    for (int64_t i = 0; i < TO; i++) out0[row * TO + i] = STORE(TERMS);
}
