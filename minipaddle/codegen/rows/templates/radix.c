/* Sort n items, whose keys keep their order if they are equal, digit by digit from the lowest. A
   digit that all share is left out. Returns the array, of two, that holds the result. */
static ITEM *NAME(ITEM *from, ITEM *to, int64_t n)
{
    if (n <= 24) {
        for (int64_t i = 1; i < n; i++) {
            const ITEM x = from[i];
            int64_t j = i;
            for (; j > 0 && KEYIN(from[j - 1]) > KEYIN(x); j--) from[j] = from[j - 1];
            from[j] = x;
        }
        return from;
    }
    PLACE count[DIGITS][256];
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++)
        for (int d = 0; d < DIGITS; d++) count[d][KEYIN(from[i]) >> 8 * d & 255]++;
    for (int d = 0; d < DIGITS; d++) {
        PLACE *own = count[d], next = 0;
        if (own[KEYIN(from[0]) >> 8 * d & 255] == n) continue;
        for (int digit = 0; digit < 256; digit++) {
            const PLACE here = own[digit];
            own[digit] = next;
            next += here;
        }
        for (int64_t i = 0; i < n; i++) to[own[KEYIN(from[i]) >> 8 * d & 255]++] = from[i];
        ITEM *const sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}
