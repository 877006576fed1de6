/* A tile of C: `rows` by `vectors`, of which n columns are there (all of them if `full`). With
   `fetch` it brings the next panel of B and the one `ahead` into the second cache: a fetch into
   the first one holds one of its few places until the data is there. The sums are finished if there
   is a `bias`. */
INLINE void tile_$F(const int rows, const int vectors, const int full, const int fetch, int64_t n,
                    int64_t K, int64_t segments,
                    const $A *A, int64_t a_row, int64_t a_step, int64_t a_segment,
                    const $E *B, int64_t b_step, int64_t b_segment, int64_t b_panel, int64_t ahead,
                    $T *C, int64_t c_row, int add, const $T *bias, const $T *bounds)
{
    vector_$T c[8][4], b[4];
    lanes_$T there[4];
    UNROLL for (int j = 0; j < vectors; j++) there[j] = first_$T(n - j * LANES_$T);
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < vectors; j++) c[i][j] = (vector_$T){0};
    for (int64_t s = 0; s < segments; s++, A += a_segment, B += b_segment) {
        const $A *p = A;
        const $E *q = B;
#define TERMS(more) \
        for (int64_t k = K; k > 0; k--, p += a_step, q += b_step) { \
            KEEP(p); \
            more \
            UNROLL for (int j = 0; j < vectors; j++) { \
                b[j] = full ? load_$E(q + j * LANES_$T) \
                            : load_lanes_$E(q + j * LANES_$T, there[j]); \
                HOLD(b[j]); \
            } \
            UNROLL for (int i = 0; i < rows; i++) \
                UNROLL for (int j = 0; j < vectors; j++) $multiply; \
        }
        if (fetch) {
${unroll}            TERMS(UNROLL for (int j = 1; j <= vectors; j++) {
                __builtin_prefetch(q + b_panel + j * LANES_$T - 1, 0, 2);
                __builtin_prefetch(q + ahead + j * LANES_$T - 1, 0, 2);
            })
        } else {
${unroll}            TERMS()
        }
#undef TERMS
    }
    KEEP(C);
    if (add)
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int j = 0; j < vectors; j++) {
                const $T *p = C + i * c_row + j * LANES_$T;
                c[i][j] += full ? load_$T(p) : load_lanes_$T(p, there[j]);
            }
    if (bias)
        UNROLL for (int j = 0; j < vectors; j++) {
            const $T *p = bias + j * LANES_$T;
            b[j] = full ? load_$T(p) : load_lanes_$T(p, there[j]);
            UNROLL for (int i = 0; i < rows; i++) c[i][j] = finished_$T(c[i][j], b[j], bounds);
        }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < vectors; j++) {
            $T *p = C + i * c_row + j * LANES_$T;
            if (full) store_$T(p, c[i][j]);
            else store_lanes_$T(p, there[j], c[i][j]);
        }
}
