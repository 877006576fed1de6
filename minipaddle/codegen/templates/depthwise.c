/* c[p, :] = the sum over a window of taps of a[pixel, :] * b[tap, :], for M pixels */
static void depthwise_$T(int64_t M, int64_t C, int64_t high, int64_t wide, const $T *a,
                         int64_t a_row, int64_t down, int64_t across, const $T *b, $T *c,
                         int64_t c_row)
{
    for (int64_t m = 0; m < M; m++, a += a_row, c += c_row)
        for (int64_t k = 0; k < C; k += LANES_$T) {
            const int full = C - k >= LANES_$T;
            const $T *weight = b + k;
            vector_$T sum = {0};
            for (int64_t t = 0; t < high; t++)
                for (int64_t u = 0; u < wide; u++, weight += C) {
                    const $T *p = a + t * down + u * across + k;
                    sum += full ? load_$T(p) * load_$T(weight)
                                : load_part_$T(p, C - k) * load_part_$T(weight, C - k);
                }
            if (full) store_$T(c + k, sum);
            else store_part_$T(c + k, C - k, sum);
        }
}
