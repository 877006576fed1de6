if (!chain[2 * i + 1]) continue;
T sum = START;
for (int64_t n = i; n >= 0; n = chain[2 * n]) {
    const int64_t i = n;
    sum += LOAD(VALUE);
}
out0[PLACE] = STORE(sum);
