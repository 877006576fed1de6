enum { COUNT = 512 };
const int64_t blocks = (INNER + COUNT - 1) / COUNT;
PARALLEL
for (int64_t block = 0; block < OUTER * blocks; block++) {
    const int64_t first = block % blocks * COUNT;
    const int64_t count = INNER - first < COUNT ? INNER - first : COUNT;
    STATE
    for (int64_t k = 0; k < COUNT; k++) {
        START
    }
    for (int64_t i = 0; i < LENGTH; i++) {
        const int64_t row = (block / blocks * LENGTH + NEXT) * INNER + first;
        for (int64_t k = 0; k < count; k++) {
            const int64_t at = row + k;
            STEP
        }
    }
}
