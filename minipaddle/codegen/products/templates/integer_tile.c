/* Products of $A with $B in int32_t, at most $rows rows by two vectors of columns at a time. $terms terms
   are summed at once, and nothing saturates; sums of whole numbers wrap around. b is in panels, the
   columns of a tile, in groups of terms, after $header numbers: what sums begin with. */
#if !defined $needs || $guarded
static __attribute__((noinline)) void integer_plain_$F(
    const int64_t rows, int64_t groups, const $A *a, int64_t a_row, const $B *b, int32_t *c,
    int64_t c_row, int64_t n)
{
    for (int64_t i = 0; i < rows; i++, a += a_row, c += c_row) {
        uint32_t sum[$panel] = {0};
        if ($header) memcpy(sum, b, sizeof sum);
        for (int64_t k = 0; k < $terms * groups; k += $terms)
            for (int j = 0; j < $panel; j++)
                for (int t = 0; t < $terms; t++)
                    sum[j] += (uint32_t)((a[k + t]) * (b[$header + k * $panel + $terms * j + t]));
        for (int j = 0; j < n && j < $panel; j++) c[j] = (int32_t)sum[j];
    }
}
#endif
#ifdef $needs
static inline __attribute__((always_inline)) void integer_tile_$F(
    const int rows, int64_t groups, const $A *a, int64_t a_row, const $B *b, int32_t *c,
    int64_t c_row, int64_t n)
{
    enum { LANES = $panel / 2 };
    $sums sum[$rows][2];
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++)
            sum[i][j] = $header ? ($sums) *(const $loose *)(b + $header / 2 * j) : ($sums){0};
    b += $header;
    for (int64_t k = 0; k < groups; k++, a += $terms, b += $terms * $panel) {
        const __typeof__($load(b)) y[2] = {$load(b), $load(b + $terms * LANES)};
        _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++) {
            const $words x = ($words){0} + *(const loose_word *)(a + i * a_row);
            for (int j = 0; j < 2; j++) dot_$dot(sum[i][j], x, y[j]);
        }
    }
    if (n >= $panel) {
        _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++) *($loose *)(c + i * c_row + LANES * j) = ($words)sum[i][j];
        return;
    }
    int32_t some[$rows][$panel];
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++) *($loose *)(some[i] + LANES * j) = ($words)sum[i][j];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) c[i * c_row + j] = some[i][j];
}
#else
#define integer_tile_$F integer_plain_$F
#endif

/* c = a · b for M rows of a and one panel of b, of which n columns count. */
static __attribute__((noinline)) void integer_panel_$F(
    int64_t M, int64_t n, int64_t groups, const $A *a, int64_t a_row, const $B *b, int32_t *c,
    int64_t c_row)
{
    for (int64_t tiles = (M + $rows - 1) / $rows; tiles; tiles--) {
        const int64_t rows = (M + tiles - 1) / tiles;
        switch (rows) {
$each
        }
        M -= rows, a += rows * a_row, c += rows * c_row;
    }
}
