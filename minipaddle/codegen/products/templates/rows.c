/* C (+)= A B for M rows, a multiple of $rows; the panels of B are `b_panel` apart. The last rows
   fetch the panel `ahead`. */
ONCE void rows${rows}_$F(
    int64_t M, int64_t N, int64_t K, int64_t segments,
    const $A *A, int64_t a_row, int64_t a_step, int64_t a_segment,
    const $E *B, int64_t b_step, int64_t b_segment, int64_t b_panel,
    $T *C, int64_t c_row, int add, int64_t ahead, const $T *bias,
    const $T *bounds)
{
#define TILE(first, rows, vectors, full, fetch) tile_$F(rows, vectors, full, fetch, N - n, K, \
        segments, \
        A + (m + first) * a_row, a_row, a_step, a_segment, B, b_step, b_segment, b_panel, ahead, \
        C + (m + first) * c_row + n, c_row, add, bias ? bias + n : 0, bounds)
#define TILES(vectors, full, fetch) do { \
        TILE(0, $rows < TALL ? $rows : TALL, vectors, full, fetch); \
        if ($rows > TALL) TILE(TALL, $rows - TALL, vectors, full, 0); \
    } while (0)
    for (int64_t n = 0; n < N && M; n += $panel, B += b_panel)
        if (N - n >= $panel) {
            for (int64_t m = 0; m < M; m += $rows) TILES($across, 1, $rows == $tall && m + $rows == M);
        } else if ($across > 2 && N - n > 2 * LANES_$T) {
            for (int64_t m = 0; m < M; m += $rows) TILES($across, 0, 1);
        } else if (N - n > LANES_$T) {
            for (int64_t m = 0; m < M; m += $rows) TILES($across < 2 ? $across : 2, 0, 1);
        } else
            for (int64_t m = 0; m < M; m += $rows) TILES(1, 0, 1);
#undef TILES
#undef TILE
}
