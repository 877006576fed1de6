/* to[panel][k][n] = from[n * column + k * step]: B laid out in panels, one after the other */
ONCE void panels_$F(int64_t N, int64_t K, const $T *from,
                                                int64_t column, int64_t step, $T *to)
{
    typedef $T four __attribute__((vector_size(4 * sizeof($T)), aligned(sizeof($T)), may_alias));
    typedef $I places __attribute__((vector_size(4 * sizeof($T)), unused));
    if (column == 1) {  /* rows of B, some at a time */
        for (int64_t k = 0; k < K; k += 8)
            for (int64_t n = 0; n < N; n += $panel)
                for (int64_t j = k; j < K && j < k + 8; j++) {
                    $T *panel = to + n * K + j * $panel;
                    const $T *p = from + n + j * step;
                    if (N - n >= $panel)
                        for (int i = 0; i < $panel; i += LANES_$T) store_$T(panel + i, load_$T(p + i));
                    else
                        for (int i = 0; i < $panel; i += LANES_$T)
                            store_$T(panel + i, load_part_$T(p + i, N - n - i));
                }
        return;
    }
    for (int64_t n = 0; n < N;) {
        $T *panel = to + n / $panel * (K * $panel) + n % $panel;
        const $T *p = from + n * column;
        int64_t k = 0;
        const int wide = N - n < 4 ? N - n : 4;
        for (; step == 1 && wide == 4 && k + 4 <= K; k += 4) {
            four a = *(const four *)(p + k), b = *(const four *)(p + column + k),
                 c = *(const four *)(p + 2 * column + k), d = *(const four *)(p + 3 * column + k);
            four ab = SHUFFLE(a, b, 0, 4, 1, 5), cd = SHUFFLE(c, d, 0, 4, 1, 5);
            four AB = SHUFFLE(a, b, 2, 6, 3, 7), CD = SHUFFLE(c, d, 2, 6, 3, 7);
            *(four *)(panel + k * $panel) = SHUFFLE(ab, cd, 0, 1, 4, 5);
            *(four *)(panel + (k + 1) * $panel) = SHUFFLE(ab, cd, 2, 3, 6, 7);
            *(four *)(panel + (k + 2) * $panel) = SHUFFLE(AB, CD, 0, 1, 4, 5);
            *(four *)(panel + (k + 3) * $panel) = SHUFFLE(AB, CD, 2, 3, 6, 7);
        }
        for (; k < K; k++)
            for (int i = 0; i < wide; i++) panel[k * $panel + i] = p[i * column + k * step];
        n += wide;
    }
}
