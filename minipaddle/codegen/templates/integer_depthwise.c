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

/* A row of the result of an image [h, w, c], whose windows begin at (top, left). There is memory at
   `patch` for a window of C channels, c and more up to a multiple of 16. */
static inline __attribute__((always_inline)) void integer_depthwise(
    int32_t *to, int64_t count, const int8_t *image, int64_t h, int64_t w, int64_t c,
    const int kh, const int kw, int64_t step, int64_t dh, int64_t dw, int64_t top, int64_t left,
    const int16_t *kernels, int8_t *patch)
{
    enum { MOST = 64 };
    const int64_t C = (c + 15) / 16 * 16, pairs = (kh * kw + 1) / 2;
    for (int64_t p = 0; p < count; p++, to += c, left += step) {
        const int8_t *from = image + (top * w + left) * c;
        int64_t line = dh * w * c, pixel = dw * c;
        if (C != c || top < 0 || left < 0 || top + (kh - 1) * dh >= h || left + (kw - 1) * dw >= w) {
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
            integer_taps(kh * kw, at, kernels + k * 2 * pairs, sum);
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
