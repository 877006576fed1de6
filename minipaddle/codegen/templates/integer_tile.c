/* Products of int8 in int32, $rows rows by 16 columns at a time. Two terms are summed at once: a is
   widened to int16, so that nothing saturates; b lies in panels of 16 columns, in pairs of terms. */
enum { INTEGER_ROWS = $rows, INTEGER_PANEL = 16 };
typedef int8_t bytes_16 __attribute__((vector_size(16)));
typedef bytes_16 loose_bytes __attribute__((aligned(1), may_alias));

#ifdef __AVX2__
typedef int16_t shorts_16 __attribute__((vector_size(32)));
typedef int32_t words_8 __attribute__((vector_size(32)));
typedef words_8 loose_words __attribute__((aligned(4), may_alias));
typedef int32_t loose_word __attribute__((aligned(2), may_alias));

static inline __attribute__((always_inline)) void integer_tile(
    const int rows, int64_t pairs, const int16_t *a, int64_t a_row, const int8_t *b, int64_t there,
    int32_t *c, int64_t c_row, int64_t n)
{
    words_8 sum[INTEGER_ROWS][2];
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = (words_8){0};
    for (int64_t k = 0; k < pairs; k++, a += 2, b += 2 * INTEGER_PANEL) {
        shorts_16 y[2];
        for (int j = 0; j < 2; j++)
            y[j] = __builtin_convertvector(((const loose_bytes *)b)[j], shorts_16);
        _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++) {
            const int32_t pair = *(const loose_word *)(a + i * a_row);
            const shorts_16 x = (shorts_16)((words_8){0} + pair);
            for (int j = 0; j < 2; j++) sum[i][j] += (words_8)__builtin_ia32_pmaddwd256(x, y[j]);
        }
    }
    if (there == rows && n >= INTEGER_PANEL) {
        _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++) *(loose_words *)(c + i * c_row + 8 * j) = sum[i][j];
        return;
    }
    int32_t some[INTEGER_ROWS][INTEGER_PANEL];
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++) *(loose_words *)(some[i] + 8 * j) = sum[i][j];
    for (int i = 0; i < there; i++)
        for (int j = 0; j < n && j < INTEGER_PANEL; j++) c[i * c_row + j] = some[i][j];
}
#else
static inline void integer_tile(
    const int rows, int64_t pairs, const int16_t *a, int64_t a_row, const int8_t *b, int64_t there,
    int32_t *c, int64_t c_row, int64_t n)
{
    for (int i = 0; i < there; i++, a += a_row, c += c_row) {
        int32_t sum[INTEGER_PANEL] = {0};
        for (int64_t k = 0; k < pairs; k++)
            for (int j = 0; j < INTEGER_PANEL; j++) {
                const int8_t *y = b + 2 * (k * INTEGER_PANEL + j);
                sum[j] += a[2 * k] * y[0] + a[2 * k + 1] * y[1];
            }
        for (int j = 0; j < n && j < INTEGER_PANEL; j++) c[j] = sum[j];
    }
}
#endif

/* c = a · b for M rows of a, of which there is memory for a multiple of INTEGER_ROWS. */
static __attribute__((noinline)) void integer_rows(
    int64_t M, int64_t N, int64_t pairs, const int16_t *a, const int8_t *panels, int32_t *c,
    int64_t c_row)
{
    for (int64_t n = 0; n < N; n += INTEGER_PANEL, panels += 2 * INTEGER_PANEL * pairs)
        for (int64_t m = 0; m < M; m += INTEGER_ROWS)
            if (M == 1)
                integer_tile(1, pairs, a, 2 * pairs, panels, 1, c + n, c_row, N - n);
            else
                integer_tile(INTEGER_ROWS, pairs, a + m * 2 * pairs, 2 * pairs, panels,
                             M - m < INTEGER_ROWS ? M - m : INTEGER_ROWS, c + m * c_row + n,
                             c_row, N - n);
}

/* A matrix of K rows and N columns in panels; a term or a column that is not there is 0. */
static __attribute__((noinline)) void integer_panels(
    int64_t N, int64_t K, const int8_t *b, int64_t n_step, int64_t k_step, int8_t *panels)
{
    for (int64_t n = 0; n < N; n += INTEGER_PANEL)
        for (int64_t k = 0; k < K; k += 2, panels += 2 * INTEGER_PANEL) {
            if (n_step == 1 && n + INTEGER_PANEL <= N && k + 1 < K) {
                const bytes_16 x = *(const loose_bytes *)(b + n + k * k_step);
                const bytes_16 y = *(const loose_bytes *)(b + n + (k + 1) * k_step);
                *(loose_bytes *)panels = __builtin_shufflevector(
                    x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
                *(loose_bytes *)(panels + INTEGER_PANEL) = __builtin_shufflevector(
                    x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
                continue;
            }
            for (int64_t j = 0; j < INTEGER_PANEL; j++)
                for (int64_t t = 0; t < 2; t++)
                    panels[2 * j + t] =
                        n + j < N && k + t < K ? b[(n + j) * n_step + (k + t) * k_step] : 0;
        }
}
