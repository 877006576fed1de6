/* The same, at most $rows rows by two vectors of columns at a time. */
#ifdef $needs
static inline __attribute__((always_inline)) void integer_tile_$F(
    const int rows, int64_t groups, const $A *a, int64_t a_row, const $B *b, int32_t *c,
    int64_t c_row, int64_t n)
{
    enum { LANES = $panel / 2, LINES = $terms * $panel * sizeof *b / 64, AHEAD = 4096 };
    $sums sum[$rows][2];
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++)
            sum[i][j] = $header ? ($sums) *(const $loose *)(b + $header / 2 * j) : ($sums){0};
    b += $header;
    for (int64_t k = 0; k < groups; k++, a += $terms, b += $terms * $panel) {
        const __typeof__($load(b)) y[2] = {$load(b), $load(b + $terms * LANES)};
        for (int l = 0; l < LINES; l++) __builtin_prefetch((const char *)b + AHEAD + 64 * l);
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

/* c = a · b for M rows of a, whose terms are in groups, and all panels of N columns of b. */
static void integer_rows_$F(
    int64_t M, int64_t N, int64_t groups, const $A *a, int64_t a_row, const $B *panels, int32_t *c,
    int64_t c_row)
{
#if $guarded  /* NaN is -128 behind a ReLU, too, and a scale may be negative */
    $A any = 0;
    for (int64_t k = 0; k < M * a_row; k++) any |= a[k];
    if (any < 0) {
        for (int64_t n = 0; n < N; n += $panel, panels += $terms * $panel * groups)
            integer_plain_$F(M, groups, a, a_row, panels, c + n, c_row, N - n);
        return;
    }
#endif
    for (int64_t n = 0; n < N; n += $panel, panels += $header + $terms * $panel * groups)
        integer_panel_$F(M, N - n, groups, a, a_row, panels, c + n, c_row);
}
