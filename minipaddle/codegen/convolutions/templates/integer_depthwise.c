/* Depthwise convolutions of int8, 16 channels of a pixel at a time. Two taps are summed at once, as
   pairs of int16, so that nothing saturates. */
#ifdef __AVX2__
static inline __attribute__((always_inline)) void integer_taps(
    const int taps, const int8_t *const *from, const int16_t *w, words_8 *sum)
{
    sum[0] = sum[1] = (words_8){0};
    _Pragma("GCC unroll 32") for (int t = 0; t < taps; t += 2, w += 32) {
        const bytes_16 x = *(const loose_bytes *)from[t];
        const bytes_16 y = *(const loose_bytes *)from[t + 1 < taps ? t + 1 : t];
        const bytes_16 pairs[2] = {
            __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
            __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)};
        for (int j = 0; j < 2; j++)
            sum[j] += (words_8)__builtin_ia32_pmaddwd256(
                wide_bytes(pairs[j]), wide_int16_t(w + 16 * j));
    }
}
#else
static __attribute__((noinline)) void integer_taps(
    const int taps, const int8_t *const *from, const int16_t *w, words_8 *sum)
{
    int32_t total[16] = {0};
    for (int t = 0; t < taps; t++)
        for (int k = 0; k < 16; k++) total[k] += from[t][k] * w[t / 2 * 32 + 2 * k + t % 2];
    for (int j = 0; j < 2; j++) sum[j] = *(const loose_words *)(total + 8 * j);
}
#endif

/* to[:] = sums for 32 channels. The taps are not negative, and four are summed at
   once; then those that are left. The kernels of four taps are quads in the order that unpacking makes. */
static __attribute__((noinline)) void integer_quads_plain(
    int64_t taps, const int8_t *const *from, const int8_t *w, int32_t *to)
{
    const int64_t whole = taps / 4 * 4;
    for (int64_t j = 0; j < 32; j++) {
        to[j] = 0;
        for (int64_t t = 0; t < taps; t++) {
            const int64_t quad = t / 4 * 128 + j % 16 / 4 * 32 + j / 16 * 16 + j % 4 * 4 + t % 4;
            const int64_t single = 32 * whole + (t - whole) * 128 + 4 * j;
            to[j] += from[t][j] * w[t < whole ? quad : single];
        }
    }
}
#ifdef __AVX2__
#ifdef __clang__
typedef int8_t bytes_8 __attribute__((vector_size(8), aligned(1), may_alias));
#define words_of_bytes(p) __builtin_convertvector(*(const bytes_8 *)(p), words_8)
#else
typedef int64_t loose_int64 __attribute__((aligned(1), may_alias));
typedef int64_t int64_pair __attribute__((vector_size(16)));
#define words_of_bytes(p) \
    ((words_8)__builtin_ia32_pmovsxbd256((chars_16)(int64_pair){*(const loose_int64 *)(p), 0}))
#endif
#define PAIRS(k) k, k + 32, k + 1, k + 33, k + 2, k + 34, k + 3, k + 35, k + 4, k + 36, k + 5, k + 37, \
        k + 6, k + 38, k + 7, k + 39
#define QUADS(k) k, k + 16, k + 1, k + 17, k + 2, k + 18, k + 3, k + 19
static inline __attribute__((always_inline)) void integer_quads(
    const int taps, const int8_t *const *from, const int8_t *w, int32_t *to)
{
    const int whole = taps / 4 * 4;
    counts_8 s[4] = {{0}};
    _Pragma("GCC unroll 16") for (int t = 0; t < whole; t += 4, w += 128) {
        shorts_16 low[2], high[2];
        _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++) {
            const chars_32 x = (chars_32)bytes_32(from[t + 2 * i]);
            const chars_32 y = (chars_32)bytes_32(from[t + 2 * i + 1]);
            low[i] = (shorts_16)__builtin_shufflevector(x, y, PAIRS(0), PAIRS(16));
            high[i] = (shorts_16)__builtin_shufflevector(x, y, PAIRS(8), PAIRS(24));
        }
        const shorts_16 quads[4] = {
            __builtin_shufflevector(low[0], low[1], QUADS(0), QUADS(8)),
            __builtin_shufflevector(low[0], low[1], QUADS(4), QUADS(12)),
            __builtin_shufflevector(high[0], high[1], QUADS(0), QUADS(8)),
            __builtin_shufflevector(high[0], high[1], QUADS(4), QUADS(12))};
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++)
            dot_bytes(s[j], quads[j], bytes_32(w + 32 * j));
    }
    words_8 sum[4];
    _Pragma("GCC unroll 2") for (int j = 0; j < 2; j++) {
        const words_8 a = (words_8)s[2 * j], b = (words_8)s[2 * j + 1];
        sum[j] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
        sum[j + 2] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    }
    _Pragma("GCC unroll 4") for (int t = whole; t < taps; t++, w += 128)
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++)
            sum[j] += (words_8)__builtin_ia32_pmaddwd256(
                (shorts_16)words_of_bytes(from[t] + 8 * j), wide_int16_t(w + 32 * j));
    _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) *(loose_words *)(to + 8 * j) = sum[j];
}
#undef PAIRS
#undef QUADS
#else
#define integer_quads integer_quads_plain
#endif

/* All channels of a pixel whose taps are anywhere. */
static __attribute__((noinline)) void integer_quads_pixel(
    int taps, const int8_t *const *from, int64_t c, int negative, const int8_t *w, int32_t *to)
{
    for (int64_t b = 0; b < c; b += 32, w += 128 * (taps / 4 + taps % 4)) {
        const int64_t k = b + 32 <= c ? b : c - 32;
        const int8_t *at[64];
        for (int t = 0; t < taps; t++) at[t] = from[t] + k;
        if (negative) integer_quads_plain(taps, at, w, to + k);
        else integer_quads(taps, at, w, to + k);
    }
}

static __attribute__((noinline)) int integer_negative(const int8_t *from, int64_t n)
{
    int8_t any = 0;
    for (int64_t k = 0; k < n; k++) any |= from[k];
    return any < 0;
}

/* A row of the result of an image [h, w, c], whose windows begin at (top, left). There is memory at
   `patch` for a window of C channels, c and more up to a multiple of 16. With `quads` there are 32
   channels or more, the last 32 of them overlap others, and `patch` has c channels, for taps outside of
   the image; a run finds whether bytes are negative. */
static inline __attribute__((always_inline)) void integer_depthwise(
    int32_t *to, int64_t count, const int8_t *image, int64_t h, int64_t w, int64_t c,
    const int kh, const int kw, int64_t step, int64_t dh, int64_t dw, int64_t top, int64_t left,
    const void *kernels, int8_t *patch, const int quads)
{
    enum { MOST = 64 };
    const int64_t C = (c + 15) / 16 * 16, pairs = (kh * kw + 1) / 2;
    int negative = 0;
    if (quads) {
        memset(patch, 0, c);
        for (int64_t t = 0, y = top; t < kh; t++, y += dh)
            if (y >= 0 && y < h) negative |= integer_negative(image + y * w * c, w * c);
    }
    for (int64_t p = 0; p < count; p++, to += c, left += step) {
        const int8_t *from = image + (top * w + left) * c;
        int64_t line = dh * w * c, pixel = dw * c;
        const int inside = top >= 0 && left >= 0 && top + (kh - 1) * dh < h && left + (kw - 1) * dw < w;
        if (quads && (negative || !inside)) {
            const int8_t *taps[MOST];
            for (int t = 0; t < kh * kw; t++) {
                const int64_t y = top + t / kw * dh, x = left + t % kw * dw;
                taps[t] = y >= 0 && y < h && x >= 0 && x < w ? image + (y * w + x) * c : patch;
            }
            integer_quads_pixel(kh * kw, taps, c, negative, kernels, to);
            continue;
        }
        if (quads) {
            const int8_t *each = kernels;
            for (int64_t b = 0; b < c; b += 32, each += 128 * (kh * kw / 4 + kh * kw % 4)) {
                const int64_t k = b + 32 <= c ? b : c - 32;
                const int8_t *at[MOST];
                _Pragma("GCC unroll 32") for (int t = 0; t < kh * kw; t++)
                    at[t] = from + t / kw * line + t % kw * pixel + k;
                integer_quads(kh * kw, at, each, to + k);
            }
            continue;
        }
        if (C != c || !inside) {
            memset(patch, 0, kh * kw * C);
            for (int t = 0; t < kh; t++)
                for (int u = 0; u < kw; u++) {
                    const int64_t y = top + t * dh, x = left + u * dw;
                    if (y >= 0 && y < h && x >= 0 && x < w)
                        memcpy(patch + (t * kw + u) * C, image + (y * w + x) * c, c);
                }
            from = patch, line = kw * C, pixel = C;
        }
        for (int64_t k = 0; k < C; k += 16) {
            const int8_t *at[MOST];
            words_8 sum[2];
            _Pragma("GCC unroll 32") for (int t = 0; t < kh * kw; t++)
                at[t] = from + t / kw * line + t % kw * pixel + k;
            integer_taps(kh * kw, at, (const int16_t *)kernels + k * 2 * pairs, sum);
            if (k + 16 <= c) {
                for (int j = 0; j < 2; j++) *(loose_words *)(to + k + 8 * j) = sum[j];
            } else
                for (int64_t j = k; j < c; j++) to[j] = sum[(j - k) / 8][(j - k) % 8];
        }
    }
}

/* Kernels [taps, c] for 16 channels, for pairs of taps; what is not there is 0. */
static __attribute__((noinline)) void integer_depthwise_kernels(
    int16_t *made, const int8_t *given, int64_t taps, int64_t c)
{
    for (int64_t k = 0; k < c; k += 16)
        for (int64_t t = 0; t < taps; t += 2)
            for (int64_t i = 0; i < 32; i++) {
                const int64_t tap = t + i % 2, channel = k + i / 2;
                *made++ = tap < taps && channel < c ? given[tap * c + channel] : 0;
            }
}

/* Kernels [taps, c] for `integer_quads`. */
static __attribute__((noinline)) void integer_depthwise_quads(
    int8_t *made, const int8_t *given, int64_t taps, int64_t c)
{
    const int64_t whole = taps / 4 * 4;
    for (int64_t b = 0; b < c; b += 32) {
        const int8_t *from = given + (b + 32 <= c ? b : c - 32);
        for (int64_t t = 0; t < whole; t++)
            for (int64_t k = 0; k < 32; k++)
                made[t / 4 * 128 + k % 16 / 4 * 32 + k / 16 * 16 + k % 4 * 4 + t % 4] = from[t * c + k];
        made += 32 * whole;
        for (int64_t t = whole; t < taps; t++, made += 128)
            for (int64_t k = 0; k < 32; k++) {
                const int32_t word = (uint16_t)(int16_t)from[t * c + k];
                memcpy(made + 4 * k, &word, 4);
            }
    }
}
