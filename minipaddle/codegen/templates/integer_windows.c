/* The windows of pixels [first, last) of a result, each as a row of int16, of which there are `row`;
   what lies out of the image is 0. */
static __attribute__((noinline)) void integer_windows(
    int16_t *to, int64_t row, const int8_t *image, int64_t first, int64_t last, int64_t out_w,
    int64_t h, int64_t w, int64_t c, int64_t kh, int64_t kw, int64_t sh, int64_t sw, int64_t dh,
    int64_t dw, int64_t top, int64_t left)
{
    for (int64_t p = first; p < last; p++, to += row) {
        const int64_t y0 = p / out_w * sh - top, x0 = p % out_w * sw - left;
        int16_t *at = to;
        for (int64_t t = 0; t < kh; t++) {
            const int64_t y = y0 + t * dh;
            const int8_t *line = image + (y * w + x0) * c;
            const int inside = y >= 0 && y < h;
            if (inside && dw == 1 && x0 >= 0 && x0 + kw <= w) {
                for (int64_t k = 0; k < kw * c; k++) at[k] = line[k];
                at += kw * c;
                continue;
            }
            for (int64_t u = 0; u < kw; u++, at += c) {
                const int64_t x = x0 + u * dw;
                const int there = inside && x >= 0 && x < w;
                for (int64_t k = 0; k < c; k++) at[k] = there ? line[u * dw * c + k] : 0;
            }
        }
        for (; at < to + row; at++) *at = 0;
    }
}
