/* Rows [first, last) of sums of whole numbers as whole numbers again, n columns:

       t = sum · step / high + bias (+ more)      clipped to [low, top]; `floats` keeps it
       q = round(t · unit)                        clipped to [-128, 127], the smallest for NaN

   These are the formulas of `dequantize`, `relu6` and `quantize`, and they round as those do: high is
   a power of two, and the bounds of q are whole. Columns are taken 32, 16 or 8 at a time. */
#ifdef __AVX2__
typedef int16_t shorts_8 __attribute__((vector_size(16)));
typedef int8_t signed_32 __attribute__((vector_size(32)));
typedef int32_t words_4 __attribute__((vector_size(16)));

/* The first columns of a row, as many as are taken 32, 16 or 8 at a time: how many they are. */
static inline __attribute__((always_inline)) int64_t requantize_row(
    int64_t n, const int32_t *sums, const float high, const float *step, const float *bias,
    const float *more, float *floats, const int clipped, const float low, const float top,
    const float unit, int8_t *q, const int small)
{
    int64_t l = 0;
#define COLUMNS(n, at) requantize_##n(sums + (at), high, step + (at), bias + (at), \
        more ? more + (at) : 0, floats ? floats + (at) : 0, clipped, low, top, unit, small)
#define EIGHT(at) COLUMNS(8, at)
#ifdef __AVX512F__
    for (; l + 16 <= n; l += 16) {
        bytes_16 b;
        __asm__("vpmovsdb %1, %0" : "=v"(b) : "v"(COLUMNS(16, l)));
        if (small && clipped) b &= b > 0;
        *(loose_bytes *)(q + l) = b;
    }
#endif
    for (; l + 32 <= n; l += 32) {
        const words_8 a = EIGHT(l), b = EIGHT(l + 8), c = EIGHT(l + 16), d = EIGHT(l + 24);
        words_8 mixed = (words_8)__builtin_ia32_packsswb256(
            __builtin_ia32_packssdw256(a, b), __builtin_ia32_packssdw256(c, d));
        if (small && clipped) mixed = (words_8)((signed_32)mixed & ((signed_32)mixed > 0));
        *(loose_words *)(q + l) = (words_8)__builtin_ia32_permvarsi256(
            mixed, (words_8){0, 4, 1, 5, 2, 6, 3, 7});
    }
    for (; l + 8 <= n; l += 8) {
        const words_8 a = EIGHT(l);
        const words_4 *half = (const words_4 *)&a;
        const shorts_8 both = (shorts_8)__builtin_ia32_packssdw128(half[0], half[1]);
        bytes_16 b = (bytes_16)__builtin_ia32_packsswb128(both, both);
        if (small && clipped) b &= b > 0;
        memcpy(q + l, &b, 8);
    }
#undef EIGHT
#undef COLUMNS
    return l;
}

/* Whether no sum can become NaN, or more than a whole number holds. */
static __attribute__((noinline)) int requantize_fits(
    int64_t n, const float high, const float *step, const float *bias, const float unit)
{
    int large = 0;
    for (int64_t l = 0; l < n; l++) {
        const float most = (fabsf(step[l]) * (0x1p31f / high) + fabsf(bias[l])) * unit;
        large |= !(most < 0x1p30f);
    }
    return !large;
}
#endif

static inline __attribute__((always_inline)) void requantize(
    int64_t first, int64_t last, int64_t n, const int32_t *sums, const float high, const float *step,
    const float *bias, const float *more, float *floats, const int clipped, const float low,
    const float top, const float scale, int8_t *q)
{
    const float unit = 127.0f / scale;
#ifdef __AVX2__
    const int small = !more && !floats && (!clipped || (low == 0 && top * unit >= 127))
                      && requantize_fits(n, high, step, bias, unit);
#endif
    for (int64_t k = first * n; k < last * n; k += n) {
        int64_t l = 0;
#ifdef __AVX2__
#define ROW(small) requantize_row(n, sums + k, high, step, bias, more ? more + k : 0, \
        floats ? floats + k : 0, clipped, low, top, unit, q + k, small)
        if (unit > 0) l = small ? ROW(1) : ROW(0);
#undef ROW
#endif
        for (; l < n; l++) {
            float t = sums[k + l] * step[l] / high + bias[l];
            if (more) t = more[k + l] + t;
            if (clipped) t = t < low ? low : t;
            if (clipped) t = t > top ? top : t;
            if (floats) floats[k + l] = t;
            t = rintf(t * unit);
            t = t > -128.0f ? t : -128.0f;
            q[k + l] = (int8_t)(t > 127.0f ? 127.0f : t);
        }
    }
}
