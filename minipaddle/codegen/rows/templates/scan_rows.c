enum { COUNT = 4 };
PARALLEL
for (int64_t block = 0; block < (LINES + COUNT - 1) / COUNT; block++) {
    const int64_t first = block * COUNT, left = LINES - first;
    STATE
    for (int64_t k = 0; k < COUNT; k++) {
        START
    }
    for (int64_t i = 0; i < (left < COUNT ? 0 : LENGTH); i++) {
        #pragma GCC unroll 4
        for (int64_t k = 0; k < COUNT; k++) {
            const int64_t at = (first + k) * LENGTH + NEXT;
            STEP
        }
    }
    for (int64_t k = 0; k < (left < COUNT ? left : 0); k++)
        for (int64_t i = 0; i < LENGTH; i++) {
            const int64_t at = (first + k) * LENGTH + NEXT;
            STEP
        }
}
