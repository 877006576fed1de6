
static const int table[] = {TABLE};
const int64_t o = i / (INNER * SIZE), place = i / INNER % SIZE;
T sum = 0;
for (int k = 0; k < COUNT; k++)
    if (table[k] == place) sum += LOAD(in0[(o * COUNT + k) * INNER + i % INNER]);
out0[i] = STORE(sum);
