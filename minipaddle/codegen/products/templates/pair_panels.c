/* to[panel][k][n] = from[n * column + k * step], and with it the term half a step on */
ONCE void panels_$F(int64_t N, int64_t K, const bfloat16 *from, int64_t column, int64_t step, pairs *to)
{
    typedef pairs four __attribute__((vector_size(16), aligned(2)));
    typedef int32_t places __attribute__((vector_size(16), unused));
    if (column == 1) {  /* rows of B, some at a time */
        for (int64_t k = 0; k < K; k += 8)
            for (int64_t n = 0; n < N; n += $panel)
                for (int64_t j = k; j < K && j < k + 8; j++) {
                    pairs *panel = to + n * K + j * $panel;
                    if (N - n >= $panel) zip_pairs($panel, from + n + j * step, step / 2, panel);
                    else zip_pairs(N - n, from + n + j * step, step / 2, panel);
                }
        return;
    }
    for (int64_t n = 0; n < N;) {
        pairs *panel = to + n / $panel * (K * $panel) + n % $panel;
        const bfloat16 *p = from + n * column;
        int64_t k = 0;
        const int wide = N - n < 4 ? N - n : 4;
        for (; step == 2 && wide == 4 && k + 4 <= K; k += 4) {
            four a = *(const four *)(p + 2 * k), b = *(const four *)(p + column + 2 * k),
                 c = *(const four *)(p + 2 * column + 2 * k), d = *(const four *)(p + 3 * column + 2 * k);
            four ab = SHUFFLE(a, b, 0, 4, 1, 5), cd = SHUFFLE(c, d, 0, 4, 1, 5);
            four AB = SHUFFLE(a, b, 2, 6, 3, 7), CD = SHUFFLE(c, d, 2, 6, 3, 7);
            *(four *)(panel + k * $panel) = SHUFFLE(ab, cd, 0, 1, 4, 5);
            *(four *)(panel + (k + 1) * $panel) = SHUFFLE(ab, cd, 2, 3, 6, 7);
            *(four *)(panel + (k + 2) * $panel) = SHUFFLE(AB, CD, 0, 1, 4, 5);
            *(four *)(panel + (k + 3) * $panel) = SHUFFLE(AB, CD, 2, 3, 6, 7);
        }
        for (; k < K; k++)
            for (int i = 0; i < wide; i++)
                zip_pairs(1, p + i * column + k * step, step / 2, panel + k * $panel + i);
        n += wide;
    }
}
