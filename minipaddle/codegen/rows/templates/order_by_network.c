const int64_t groups = (LINES + LANES - 1) / LANES;
PARALLEL
for (int64_t part = 0; part < PARTS; part++) {
    ITEM *const items = (ITEM *)(work + part * ROOM);
    for (int64_t group = part * groups / PARTS; group < (part + 1) * groups / PARTS; group++) {
        const int64_t begin = group * LANES, end = begin + LANES < LINES ? begin + LANES : LINES;
        for (int64_t line = begin; line < end; line++) {
            const E *x = in0 + line / INNER * LENGTH * INNER + line % INNER;
            for (int64_t i = 0; i < LENGTH; i++) {
                const KEY key = TURN KEYOF(LOAD(x[i * INNER])START);
                items[i * LANES + line - begin] = MAKE;
            }
        }
        SORT(items, LENGTH);
        for (int64_t line = begin; line < end; line++) {
            const E *x = in0 + line / INNER * LENGTH * INNER + line % INNER;
            const ITEM *const sorted = items + line - begin;
            OUTPUT
        }
    }
}
