/* to[m * row + k] = the pair of from[m + 2 * k * apart] and the one `apart` from it, for up to 16 k */
ONCE void turn_pairs(int64_t M, int64_t K, const bfloat16 *from, int64_t apart, pairs *to, int64_t row)
{
    typedef uint16_t halves __attribute__((vector_size(32), aligned(2), may_alias));
    typedef uint32_t lanes __attribute__((vector_size(64)));
    typedef uint32_t loose __attribute__((vector_size(64), aligned(4), may_alias));
    typedef int32_t places __attribute__((vector_size(64), unused));
    int64_t m = 0;
    for (; K == 16 && m + 16 <= M; m += 16) {
        lanes a[16], b[16];
        UNROLL for (int i = 0; i < 16; i++) {
            const bfloat16 *p = from + m + 2 * i * apart;
            a[i] = __builtin_convertvector(*(const halves *)p, lanes)
                | __builtin_convertvector(*(const halves *)(p + apart), lanes) << 16;
        }
#define TURN(a, b)  /* moves a bit of the place to the row */ \
        UNROLL for (int i = 0; i < 8; i++) { \
            b[2 * i] = SHUFFLE(a[i], a[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23); \
            b[2 * i + 1] = \
                SHUFFLE(a[i], a[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31); \
        }
        TURN(a, b)
        TURN(b, a)
        TURN(a, b)
        TURN(b, a)
#undef TURN
        UNROLL for (int i = 0; i < 16; i++) *(loose *)(to + (m + i) * row) = a[i];
    }
    for (; m < M; m++)
        for (int64_t k = 0; k < K; k++) zip_pairs(1, from + m + 2 * k * apart, apart, to + m * row + k);
}
