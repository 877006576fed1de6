/* A list of the best so far; most elements are worse than its last, which a block shows at once. */
enum { BLOCK = 8 * LANES };
PARALLEL
for (int64_t line = 0; line < LINES; line++) {
    const E *x = in0 + line / INNER * LENGTH * INNER + line % INNER;
    KEY best[COUNT] = {0};
    int64_t place[COUNT] = {0};
    int64_t count = 0, i = 0;
    T last = 0;
    while (i < LENGTH) {
        if (count == COUNT)
            for (; i + BLOCK <= LENGTH; i += BLOCK) {
                int any = 0;
                for (int k = 0; k < BLOCK; k++) any |= !(LOAD(x[(i + k) * INNER]) WORSE last);
                if (any) break;
            }
        const int64_t end = i + BLOCK < LENGTH ? i + BLOCK : LENGTH;
        for (; i < end; i++) {
            const T value = LOAD(x[i * INNER]);
            if (count == COUNT && value WORSE last) continue;
            const KEY key = TURN KEYOF(value START);
            if (count == COUNT && key >= best[COUNT - 1]) continue;
            int64_t j = count < COUNT ? count++ : COUNT - 1;
            for (; j > 0 && best[j - 1] > key; j--) best[j] = best[j - 1], place[j] = place[j - 1];
            best[j] = key;
            place[j] = i;
            last = LOAD(x[place[count - 1] * INNER]);
        }
    }
    int64_t *to = out0 + line / INNER * COUNT * INNER + line % INNER;
    for (int64_t k = 0; k < COUNT; k++) to[k * INNER] = place[k];
}
