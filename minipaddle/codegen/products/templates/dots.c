/* The sum of all lanes: one half is added to the other, in registers. */
INLINE $T total_$E(vector_$T v)
{
    enum { FEW = REGISTER / 4 > sizeof($T) ? REGISTER / 4 : sizeof($T) };
    typedef $T half __attribute__((vector_size(REGISTER / 2), may_alias));
    typedef $T few __attribute__((vector_size(FEW), may_alias));
    const half sums = ((half *)&v)[0] + ((half *)&v)[1];
    few sum = ((few *)&sums)[0];
    if (FEW < REGISTER / 2) sum += ((few *)&sums)[1];
    $T total = sum[0];
    UNROLL for (int l = 1; l < FEW / (int)sizeof($T); l++) total += sum[l];
    return total;
}

/* A tile of C by vectors along k, which is the unit axis of A and of B; the columns `ahead` are
   fetched into the second cache. */
INLINE void dot_tile_$E(const int rows, const int columns, int64_t ahead, int64_t K,
                        const $T *A, int64_t a_row,
                        const $E *B, int64_t b_column, $T *C, int64_t c_row, int64_t c_column,
                        int add)
{
    vector_$T c[4][4];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < columns; j++) c[i][j] = (vector_$T){0};
    for (int64_t k = 0; k < K; k += LANES_$T) {
        const lanes_$T there = first_$T(K - k);
        vector_$T b[4];
        UNROLL for (int j = 0; j < columns; j++) {
            b[j] = $load(B + j * b_column + k, $rest);
            if (ahead) __builtin_prefetch(B + ahead + j * b_column + k + LANES_$T - 1, 0, 2);
        }
        UNROLL for (int i = 0; i < rows; i++) {
            const vector_$T a = load_lanes_$T(A + i * a_row + k, there);
            UNROLL for (int j = 0; j < columns; j++) c[i][j] += a * b[j];
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < columns; j++) {
            $T *p = C + i * c_row + j * c_column;
            const $T total = total_$E(c[i][j]);
            *p = add ? *p + total : total;
        }
}

/* C (+)= A B where both are read along k: for few rows or columns. With `far` columns of B are
   fetched long before they are read. */
ONCE void dots_$E(
    int64_t M, int64_t N, int64_t K, const $T *A, int64_t a_row, const $E *B, int64_t b_column,
    $T *C, int64_t c_row, int64_t c_column, int add, int far)
{
#define DOTS(rows, columns) dot_tile_$E(rows, columns, ahead, K, A + m * a_row, a_row, \
        B + n * b_column, b_column, C + m * c_row + n * c_column, c_row, c_column, add)
#define HIGH(columns) do { \
        if (high == 4) DOTS(4, columns); \
        else if (high == 3) DOTS(3, columns); \
        else if (high == 2) DOTS(2, columns); \
        else DOTS(1, columns); \
    } while (0)
    for (int64_t n = 0, wide; n < N; n += wide) {
        wide = N - n < 4 ? 1 : 4;
        const int64_t ahead = far && N - n > 16 ? 16 * b_column : 0;
        for (int64_t m = 0, high; m < M; m += high) {
            high = M - m > 4 && M - m < 8 ? (M - m + 1) / 2 : M - m < 4 ? M - m : 4;
            if (wide == 4) HIGH(4);
            else HIGH(1);
        }
    }
#undef HIGH
#undef DOTS
}
