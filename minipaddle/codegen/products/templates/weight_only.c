/* Floats times whole numbers of $bits bits: two outputs for some rows, in vectors of 8 terms. */
typedef $T eights_$T __attribute__((vector_size(8 * sizeof($T))));
typedef eights_$T loose_eights_$T __attribute__((aligned(sizeof($T)), may_alias));

static inline __attribute__((always_inline)) void weight_only_${T}_$bits(
    const int rows, const int64_t K, const int64_t group, int64_t N, const $T *x, const int8_t *w,
    const $T *scale, $T *y, const int outs)
{
    const int apart = rows == 1 ? 2 : 1;  /* sums of a row, whose additions do not wait for each other */
    eights_$T total[4][2] = {0};
    $T rest[4][2] = {0};
    for (int64_t g = 0; g * group < K; g++) {
        eights_$T sum[4][2] = {0};
        int64_t k = g * group;
        for (; k + 8 * apart <= g * group + group; k += 8 * apart)
            _Pragma("GCC unroll 2") for (int u = 0; u < apart; u++) {
                const ints_8 first = eight_bytes(w + k + 8 * u);
                const ints_8 q[2] = {$low, $high};
                _Pragma("GCC unroll 2") for (int j = 0; j < outs; j++) {
                    const eights_$T v = __builtin_convertvector(q[j], eights_$T);
                    _Pragma("GCC unroll 4") for (int i = 0; i < rows; i++)
                        sum[i + u][j] += *(const loose_eights_$T *)(x + i * K + k + 8 * u) * v;
                }
            }
        if (apart == 2)
            for (int j = 0; j < outs; j++) sum[0][j] += sum[1][j];
        _Pragma("GCC unroll 2") for (int j = 0; j < outs; j++)
            _Pragma("GCC unroll 4") for (int i = 0; i < rows; i++)
                total[i][j] += sum[i][j] * $unit * scale[g * N + j];
        for (; k < g * group + group; k++)
            _Pragma("GCC unroll 2") for (int j = 0; j < outs; j++)
                for (int i = 0; i < rows; i++)
                    rest[i][j] += x[i * K + k] * scale[g * N + j] * $one;
    }
    for (int i = 0; i < rows; i++)
        _Pragma("GCC unroll 2") for (int j = 0; j < outs; j++) {
            $T sum = rest[i][j];
            for (int l = 0; l < 8; l++) sum += total[i][j][l];
            y[i * N + j] = sum;
        }
}
