PARALLEL
for (int64_t part = 0; part < PARTS; part++) {
    ITEM *const first = (ITEM *)(work + part * ROOM), *const second = first + LENGTH;
    for (int64_t line = part * LINES / PARTS; line < (part + 1) * LINES / PARTS; line++) {
        const E *x = in0 + line / INNER * LENGTH * INNER + line % INNER;
        for (int64_t i = 0; i < LENGTH; i++) {
            const KEY key = TURN KEYOF(LOAD(x[i * INNER])START);
            first[i] = MAKE;
        }
        const ITEM *const sorted = SORT(first, second, LENGTH);
        OUTPUT
    }
}
