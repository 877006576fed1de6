/* to[panel][k][n] = from[n * column + k * step], as $D; a column that is not there is 0 */
ONCE void panels_$F(int64_t N, int64_t K, const $E *from, int64_t column, int64_t step, $D *to)
{
    for (int64_t k = 0; k < K; k += 8)
        for (int64_t n = 0; n < N; n += $panel)
            for (int64_t j = k; j < K && j < k + 8; j++) {
                $D *panel = to + n * K + j * $panel;
                const $E *p = from + n * column + j * step;
                const int wide = N - n < $panel ? N - n : $panel;
                if (column == 1 && wide == $panel)
                    for (int i = 0; i < $panel; i += LANES_$E) $copy;
                else
                    for (int i = 0; i < $panel; i++)
                        panel[i] = i < wide ? $one(p[i * column]) : $none;
            }
}
