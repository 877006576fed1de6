/* C (+)= A B for a few rows: B is read once, `terms` of its rows side by side; the rows
   `ahead` are fetched into the second cache. */
INLINE void stream_$E(const int rows, const int terms, int64_t ahead, int64_t N,
                      const $T *A, int64_t a_row, int64_t a_step,
                      const $E *B, int64_t b_step, $T *C, int64_t c_row, int add)
{
    vector_$T a[4][4];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int k = 0; k < terms; k++)
            a[i][k] = (vector_$T){0} + A[i * a_row + k * a_step];
#define COLUMNS(load, load_b, store) do { \
        vector_$T c[4]; \
        UNROLL for (int i = 0; i < rows; i++) \
            c[i] = add ? load(C + i * c_row + n) : (vector_$T){0}; \
        UNROLL for (int k = 0; k < terms; k++) { \
            const vector_$T b = load_b(B + k * b_step + n); \
            if (ahead) __builtin_prefetch(B + ahead + k * b_step + n + LANES_$T - 1, 0, 2); \
            UNROLL for (int i = 0; i < rows; i++) c[i] += a[i][k] * b; \
        } \
        UNROLL for (int i = 0; i < rows; i++) store(C + i * c_row + n, c[i]); \
    } while (0)
#define LOAD_PART(p) load_part_$T(p, N - n)
#define LOAD_PART_B(p) load_part_$E(p, N - n)
#define STORE_PART(p, v) store_part_$T(p, N - n, v)
    int64_t n = 0;
    for (; n + LANES_$T <= N; n += LANES_$T) COLUMNS(load_$T, load_$E, store_$T);
    if (n < N) COLUMNS(LOAD_PART, LOAD_PART_B, STORE_PART);
#undef STORE_PART
#undef LOAD_PART_B
#undef LOAD_PART
#undef COLUMNS
}
