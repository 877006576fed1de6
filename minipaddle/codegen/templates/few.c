/* C (+)= A B for $rows rows: C stays in the first-level cache. */
ONCE void few${rows}_$T(int64_t N, int64_t K, const $T *A, int64_t a_row, int64_t a_step,
                        const $T *B, int64_t b_step, $T *C, int64_t c_row, int add)
{
    enum { TERMS = $rows <= 2 || TALL == 8 ? 4 : 2 };  /* what the registers hold */
    for (; K >= TERMS; K -= TERMS, A += TERMS * a_step, B += TERMS * b_step, add = 1)
        stream_$T($rows, TERMS, N, A, a_row, a_step, B, b_step, C, c_row, add);
    for (; K > 0; K--, A += a_step, B += b_step, add = 1)
        stream_$T($rows, 1, N, A, a_row, a_step, B, b_step, C, c_row, add);
}
