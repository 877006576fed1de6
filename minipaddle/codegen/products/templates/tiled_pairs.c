#if defined tile_load && defined __AVX512F__
enum { WIDE = 2 * SIDE };  /* the rows of a block */

/* to = `rows` of `columns` pairs, and zeros up to its own size */
INLINE void pad_pairs(int64_t rows, int64_t columns, const pairs *from, int64_t row,
                      int64_t high, int64_t wide, pairs *to)
{
    for (int64_t r = 0; r < high; r++, from += row)
        for (int64_t c = 0; c < wide; c += LANES_pairs, to += LANES_pairs)
            store_float((float *)to, load_part_float((const float *)from + c, r < rows ? columns - c : 0));
}

/* A block of C, 32 by 32 or less: tiles 0 to 3 are its sums, 4 and 5 rows of A, 6 and 7 columns of
   B. The last terms are padded with zeros, and so are columns that are no panel. */
INLINE void tiled_block(int64_t high, int64_t n, int64_t K, int64_t segments,
                        const pairs *A, int64_t a_row, int64_t a_segment,
                        const pairs *B, int64_t b_step, int64_t b_segment,
                        float *C, int64_t c_row, int add, const float *bias, const float *bounds)
{
    pairs left[WIDE * SIDE], right[SIDE * WIDE];
    float part[WIDE * WIDE], *to = n < WIDE ? part : C;
    const int64_t to_row = n < WIDE ? WIDE : c_row, loose = n < WIDE && b_step != WIDE;
    const int low = high > SIDE, wide = n > SIDE, more = add && n >= WIDE;
    for (int64_t i = 0; i < high; i++)
        for (int j = 0; j <= wide; j++) __builtin_prefetch(C + i * c_row + j * SIDE, 0, 2);
#define EACH_SUM(DO) \
    DO(0, to, to_row); \
    if (wide) DO(1, to + SIDE, to_row); \
    if (low) DO(2, to + SIDE * to_row, to_row); \
    if (low && wide) DO(3, to + SIDE * to_row + SIDE, to_row)
#define CLEAR(t, p, row) tile_zero(t)
    if (more) { EACH_SUM(tile_load); } else { EACH_SUM(CLEAR); }
    for (int64_t s = 0; s < segments; s++, A += a_segment, B += b_segment)
        for (int64_t k = 0; k < K; k += SIDE) {
            const pairs *a = A + k, *b = B + k * b_step;
            int64_t a_next = a_row, b_next = b_step;
            if (K - k < SIDE) {
                pad_pairs(high, K - k, a, a_row, high, SIDE, left);
                a = left, a_next = SIDE;
            }
            if (K - k < SIDE || loose) {
                pad_pairs(K - k, n, b, b_step, SIDE, WIDE, right);
                b = right, b_next = WIDE;
            }
            tile_load(4, a, a_next);
            tile_load(6, b, b_next);
            tile_multiply(0, 4, 6);
            if (low) tile_load(5, a + SIDE * a_next, a_next);
            if (low) tile_multiply(2, 5, 6);
            if (wide) tile_load(7, b + SIDE, b_next);
            if (wide) tile_multiply(1, 4, 7);
            if (low && wide) tile_multiply(3, 5, 7);
        }
    EACH_SUM(tile_store);
#undef CLEAR
#undef EACH_SUM
    for (int64_t i = 0; i < (bias || n < WIDE ? high : 0); i++)
        for (int64_t j = 0; j < n; j += LANES_float) {
            const lanes_float there = first_float(n - j);
            float *c = C + i * c_row + j;
            vector_float v = load_float(to + i * to_row + j);
            if (add && !more) v += load_lanes_float(c, there);
            if (bias) v = finished_float(v, load_lanes_float(bias + j, there), bounds);
            store_lanes_float(c, there, v);
        }
}
#endif
/* C (+)= A B for M rows, where the terms of A are neighbours */
ONCE void tiled_pairs(
    int64_t M, int64_t N, int64_t K, int64_t segments,
    const pairs *A, int64_t a_row, int64_t a_step, int64_t a_segment,
    const pairs *B, int64_t b_step, int64_t b_segment, int64_t b_panel,
    float *C, int64_t c_row, int add, int64_t ahead, const float *bias,
    const float *bounds)
{
#if defined tile_load && defined __AVX512F__
    int64_t m = 0, end = M < WIDE ? M : M / WIDE * WIDE;  /* of whole blocks, then of the last rows */
    for (; has_tiles && m < M; m = end, end = M) {
        const int64_t high = end - m < WIDE ? end - m : WIDE;
        begin_tiles(high < SIDE ? high : SIDE, high > SIDE ? high - SIDE : SIDE);
        for (int64_t n = 0; n < N; n += WIDE)
            for (int64_t i = m; i < end; i += WIDE)
                tiled_block(high, N - n, K, segments, A + i * a_row, a_row, a_segment,
                            B + n / WIDE * b_panel, b_step, b_segment, C + i * c_row + n, c_row, add,
                            bias ? bias + n : 0, bounds);
        release_tiles();
    }
    if (has_tiles) return;
#endif
    rows1_pairs(M, N, K, segments, A, a_row, a_step, a_segment, B, b_step, b_segment, b_panel, C, c_row,
                add, ahead, bias, bounds);
}
