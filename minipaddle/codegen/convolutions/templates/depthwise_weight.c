/* sum[tap, :] += the sum over pixels of a[pixel met, :] * g[pixel, :] */
static void depthwise_weight_$T(int64_t rows, int64_t M, int64_t C, int64_t high, int64_t wide,
                                const $T *a, int64_t a_row, int64_t a_line, int64_t down,
                                int64_t across, const $T *g, $T *sum)
{
    for (int64_t t = 0; t < high; t++)
        for (int64_t u = 0; u < wide; u++, sum += C)
            for (int64_t k = 0; k < C; k += LANES_$T) {
                const int full = C - k >= LANES_$T;
                vector_$T total = {0};
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t m = 0; m < M; m++) {
                        const $T *p = a + r * a_line + m * a_row + t * down + u * across + k;
                        const $T *q = g + (r * M + m) * C + k;
                        total += full ? load_$T(p) * load_$T(q)
                                      : load_part_$T(p, C - k) * load_part_$T(q, C - k);
                    }
                if (full) store_$T(sum + k, load_$T(sum + k) + total);
                else store_part_$T(sum + k, C - k, load_part_$T(sum + k, C - k) + total);
            }
}
