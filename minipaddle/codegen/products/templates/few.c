/* C (+)= A B for $rows rows. At most SUM terms are summed one after another, in the first-level
   cache, before the sum is added to C. With `far` rows of B are fetched long before they are read. */
ONCE void few${rows}_$E(int64_t N, int64_t K, const $T *A, int64_t a_row, int64_t a_step,
                        const $E *B, int64_t b_step, $T *C, int64_t c_row, int add, int far)
{
    enum { SUM = $sum, TERMS = $rows <= 2 || TALL == 8 ? 4 : 2, AHEAD = 4 * TERMS };
    $T sum[$rows * $columns] __attribute__((aligned(REGISTER)));
    for (int64_t rest; K > 0; K = rest, add = 1) {
        int more = 0;
        for (rest = K > SUM ? K - SUM : 0; K - rest >= TERMS; K -= TERMS, more = 1) {
            stream_$E($rows, TERMS, far && K > AHEAD ? AHEAD * b_step : 0, N, A, a_row, a_step,
                      B, b_step, sum, $columns, more);
            A += TERMS * a_step, B += TERMS * b_step;
        }
        for (; K > rest; K--, A += a_step, B += b_step, more = 1)
            stream_$E($rows, 1, 0, N, A, a_row, a_step, B, b_step, sum, $columns, more);
        for (int64_t i = 0; i < $rows; i++)
            for (int64_t n = 0; n < N; n++)
                C[i * c_row + n] = (add ? C[i * c_row + n] : 0) + sum[i * $columns + n];
    }
}
