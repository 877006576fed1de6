/* A vector of c[:] of neighbouring pixels = the sum over high × wide taps of a[tap, :] * b[tap, :];
   the windows are `step` apart in a, rows of taps `b_row` in b */
INLINE void depthwise_pixels_$T(const int pixels, const int full, int64_t left, int64_t C,
                                int64_t high, const int wide, const $T *a, int64_t step,
                                int64_t down, int64_t across, const $T *b, int64_t b_row, $T *c,
                                int64_t c_row, const $T *bias, const $T *bounds)
{
    const lanes_$T there = first_$T(left);
    vector_$T sum[4] = {{0}};
    for (int64_t t = 0; t < high; t++, a += down, b += b_row)
        UNROLL for (int u = 0; u < wide; u++) {
            const vector_$T w = full ? load_$T(b + u * C) : load_lanes_$T(b + u * C, there);
            UNROLL for (int i = 0; i < pixels; i++) {
                const $T *p = a + i * step + u * across;
                sum[i] += (full ? load_$T(p) : load_lanes_$T(p, there)) * w;
            }
        }
    if (bias) {
        const vector_$T each = full ? load_$T(bias) : load_lanes_$T(bias, there);
        UNROLL for (int i = 0; i < pixels; i++) sum[i] = finished_$T(sum[i], each, bounds);
    }
    UNROLL for (int i = 0; i < pixels; i++)
        if (full) store_$T(c + i * c_row, sum[i]);
        else store_lanes_$T(c + i * c_row, there, sum[i]);
}

/* The same for all channels of one pixel, of whose window only a part is inside of the image */
static void depthwise_pixel_$T(int64_t C, int64_t high, int64_t wide, const $T *a, int64_t down,
                               int64_t across, const $T *b, int64_t b_row, $T *c,
                               const $T *bias, const $T *bounds)
{
    for (int64_t k = 0; k < C; k += LANES_$T)
        depthwise_pixels_$T(1, 0, C - k, C, high, wide, a + k, 0, down, across, b + k, b_row, c + k,
                            0, bias ? bias + k : 0, bounds);
}

/* A row of M results: a is an image's row of W pixels, with the first of `high` rows of taps. The
   windows of pixels from `begin` to `end` are inside of the row; of the others only a part is. */
INLINE void depthwise_$T(int64_t M, int64_t begin, int64_t end, int64_t W, int64_t C, int64_t high,
                         const int wide, const $T *a, int64_t step, int64_t first, int64_t gap,
                         int64_t down, const $T *b, $T *c, int64_t c_row,
                         const $T *bias, const $T *bounds)
{
    for (int64_t m = 0; m < M; m++) {
        if (m == begin && begin < end) m = end;
        if (m >= M) break;
        const int64_t x = m * step + first;
        const int64_t from = x < 0 ? (-x + gap - 1) / gap : 0;
        int64_t to = x < W ? (W - x + gap - 1) / gap : 0;
        to = to < wide ? to : wide;
        depthwise_pixel_$T(C, high, to > from ? to - from : 0, a + (x + from * gap) * C, down,
                           gap * C, b + from * C, wide * C, c + m * c_row, bias, bounds);
    }
#define PIXELS(n, full) depthwise_pixels_$T(n, full, C - k, C, high, wide, \
        a + (m * step + first) * C + k, step * C, down, gap * C, b + k, wide * C, \
        c + m * c_row + k, c_row, bias ? bias + k : 0, bounds)
#define CHANNELS(n) do { \
        int64_t k = 0; \
        for (; k + LANES_$T <= C; k += LANES_$T) PIXELS(n, 1); \
        if (k < C) PIXELS(n, 0); \
    } while (0)
    int64_t m = begin;
    for (; m + 4 <= end; m += 4) CHANNELS(4);
    for (; m < end; m++) CHANNELS(1);
#undef CHANNELS
#undef PIXELS
}
