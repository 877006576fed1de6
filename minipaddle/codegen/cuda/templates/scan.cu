
const int64_t first = i / INNER * (LENGTH * INNER) + i % INNER;
T total = START;
for (int64_t k = 0; k < LENGTH; k++) {
    const int64_t at = first + PLACE * INNER;
    total = total SIGN LOAD(in0[at]);
    out0[at] = STORE(total);
}
