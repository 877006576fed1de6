/* Products of int16 with $T in int32, at most $rows rows by 16 columns at a time. Two terms are
   summed at once, and nothing saturates; sums wrap around. b lies in panels of 16 columns, in pairs of terms. */
#ifdef __AVX2__
static inline __attribute__((always_inline)) void integer_tile_$T(
    const int rows, int64_t pairs, const int16_t *a, int64_t a_row, const $T *b, int32_t *c,
    int64_t c_row, int64_t n)
{
    counts_8 sum[INTEGER_ROWS][2];
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = (counts_8){0};
    for (int64_t k = 0; k < pairs; k++, a += 2, b += 2 * INTEGER_PANEL) {
        const shorts_16 y[2] = {wide_$T(b), wide_$T(b + INTEGER_PANEL)};
        _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++) {
            const int32_t pair = *(const loose_word *)(a + i * a_row);
            const shorts_16 x = (shorts_16)((words_8){0} + pair);
            for (int j = 0; j < 2; j++) sum[i][j] += (counts_8)__builtin_ia32_pmaddwd256(x, y[j]);
        }
    }
    if (n >= INTEGER_PANEL) {
        _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++) *(loose_words *)(c + i * c_row + 8 * j) = (words_8)sum[i][j];
        return;
    }
    int32_t some[INTEGER_ROWS][INTEGER_PANEL];
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++) *(loose_words *)(some[i] + 8 * j) = (words_8)sum[i][j];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) c[i * c_row + j] = some[i][j];
}
#else
static __attribute__((noinline)) void integer_tile_$T(
    const int rows, int64_t pairs, const int16_t *a, int64_t a_row, const $T *b, int32_t *c,
    int64_t c_row, int64_t n)
{
    for (int i = 0; i < rows; i++, a += a_row, c += c_row) {
        uint32_t sum[INTEGER_PANEL] = {0};
        for (int64_t k = 0; k < pairs; k++)
            for (int j = 0; j < INTEGER_PANEL; j++) {
                const $T *y = b + 2 * (k * INTEGER_PANEL + j);
                sum[j] += (uint32_t)(a[2 * k] * y[0] + a[2 * k + 1] * y[1]);
            }
        for (int j = 0; j < n && j < INTEGER_PANEL; j++) c[j] = (int32_t)sum[j];
    }
}
#endif

/* c = a · b for M rows of a and one panel of b, of which n columns count. */
static __attribute__((noinline)) void integer_panel_$T(
    int64_t M, int64_t n, int64_t pairs, const int16_t *a, int64_t a_row, const $T *b, int32_t *c,
    int64_t c_row)
{
    for (; M >= INTEGER_ROWS; M -= INTEGER_ROWS, a += INTEGER_ROWS * a_row, c += INTEGER_ROWS * c_row)
        integer_tile_$T(INTEGER_ROWS, pairs, a, a_row, b, c, c_row, n);
    switch (M) {
$rest
    }
}
