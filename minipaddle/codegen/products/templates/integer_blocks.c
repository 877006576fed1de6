/* The same by tiles of the processor: `two` times two tiles of sums. The first rows that multiply a
   panel fetch what comes `FAR` bytes later. */
enum { TWO_TILES = 32, FAR = 1 << 14 };
#ifdef tile_load
static inline __attribute__((always_inline)) void integer_block_$F(
    const int two, const int fetch, int64_t groups, const $A *a, int64_t a_row, int64_t low,
    const $B *b, int32_t *c, int64_t c_row)
{
    tile_zero(0);
    tile_zero(1);
    if (two) tile_zero(2);
    if (two) tile_zero(3);
    for (int64_t k = 0; k < groups; k += 16, a += 64, b += 64 * $panel) {
        if (fetch)
            _Pragma("GCC unroll 32") for (int l = 0; l < 32; l++)
                __builtin_prefetch(b + FAR + 64 * l);
        tile_load(4, a, a_row / 4);
        tile_load(6, b, $panel);
        tile_multiply_bytes(0, 4, 6);
        tile_load(7, b + 64, $panel);
        tile_multiply_bytes(1, 4, 7);
        if (two) tile_load(5, a + low * a_row, a_row / 4);
        if (two) tile_multiply_bytes(2, 5, 6);
        if (two) tile_multiply_bytes(3, 5, 7);
    }
    tile_store(0, c, c_row);
    tile_store(1, c + 16, c_row);
    if (two) tile_store(2, c + low * c_row, c_row);
    if (two) tile_store(3, c + low * c_row + 16, c_row);
}
#endif

/* c = a · b for M rows of a, whose terms are in groups, and all panels of N columns of b. M is
   divided into blocks of `high` rows, the last of which ends with the last row; so are their two
   tiles. */
static __attribute__((noinline)) void integer_rows_$F(
    int64_t M, int64_t N, int64_t groups, const $A *a, int64_t a_row, const $B *panels, int32_t *c,
    int64_t c_row)
{
#ifdef tile_load
    const int64_t blocks = (M + TWO_TILES - 1) / TWO_TILES, high = (M + blocks - 1) / blocks;
    const int64_t rows = high > SIDE ? (high + 1) / 2 : high, low = high - rows;
    int32_t some[TWO_TILES][$panel];
    if (has_tiles) begin_tiles(rows, rows);
    for (int64_t n = 0; has_tiles && n < N; n += $panel, panels += $terms * $panel * groups)
        for (int64_t m = 0; m < M; m += high) {
            const int64_t first = m + high > M ? M - high : m, part = N - n < $panel;
            int32_t *to = part ? some[0] : c + first * c_row + n;
            const int64_t step = part ? $panel : c_row;
            if (low && !m)
                integer_block_$F(1, 1, groups, a, a_row, low, panels, to, step);
            else if (low)
                integer_block_$F(1, 0, groups, a + first * a_row, a_row, low, panels, to, step);
            else
                integer_block_$F(0, 1, groups, a + first * a_row, a_row, 0, panels, to, step);
            for (int64_t i = 0; i < high && part; i++)
                memcpy(c + (first + i) * c_row + n, some[i], (N - n) * sizeof *c);
        }
    if (has_tiles) {
        release_tiles();
        return;
    }
#endif
    for (int64_t n = 0; n < N; n += $panel, panels += $terms * $panel * groups)
        integer_plain_$F(M, groups, a, a_row, panels, c + n, c_row, N - n);
}
