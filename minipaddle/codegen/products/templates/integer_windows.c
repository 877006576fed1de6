/* n numbers of one byte as terms of the left side. Up to $copied - 1 more may be read, before
   `end`, and written. */
static inline __attribute__((always_inline)) void integer_widen_$F(
    $A *to, const int8_t *from, int64_t n, const int8_t *end)
{
    if (end - from >= n + $copied - 1) {
        for (int64_t k = 0; k < n; k += $copied) $wide;
        return;
    }
    for (int64_t k = 0; k < n; k++) to[k] = $one;
}

/* The windows of pixels [first, last) of a result, each as a row of $A, of which there are `row`; pixels
   outside of the image are 0. Up to $copied - 1 numbers after the last row are written, too. */
static __attribute__((noinline)) void integer_windows_$F(
    $A *to, int64_t row, const int8_t *image, int64_t first, int64_t last, int64_t out_w,
    int64_t h, int64_t w, int64_t c, int64_t kh, int64_t kw, int64_t sh, int64_t sw, int64_t dh,
    int64_t dw, int64_t top, int64_t left)
{
    const int8_t *end = image + h * w * c;
    int64_t across = first % out_w, y0 = first / out_w * sh - top;
    for (int64_t p = first; p < last; p++, to += row) {
        const int64_t x0 = across * sw - left, n = kw * c, last = (y0 + (kh - 1) * dh) * w + x0;
        const int8_t *line = image + (y0 * w + x0) * c;
        const int whole = dw == 1 && x0 >= 0 && x0 + kw <= w && y0 >= 0
                          && end - image >= last * c + n + $copied - 1;
        $A *at = to;
        for (int64_t t = 0; t < kh && whole; t++, line += dh * w * c, at += n)
            for (int64_t k = 0; k < n; k += $copied) {
                $A *const to = at;
                const int8_t *const from = line;
                $wide;
            }
        for (int64_t t = 0; t < kh && !whole; t++) {
            const int64_t y = y0 + t * dh;
            line = image + (y * w + x0) * c;
            const int inside = y >= 0 && y < h;
            if (inside && dw == 1 && x0 >= 0 && x0 + kw <= w) {
                integer_widen_$F(at, line, kw * c, end);
                at += kw * c;
                continue;
            }
            for (int64_t u = 0; u < kw; u++, at += c) {
                const int64_t x = x0 + u * dw;
                const int there = inside && x >= 0 && x < w;
                if (there)
                    integer_widen_$F(at, line + u * dw * c, c, end);
                else
                    memset(at, $zero, sizeof($A) * c);
            }
        }
        if (!$fill)  /* what comes after the terms is multiplied by 0 in tiles */
            for (; at < to + row; at++) *at = 0;
        if (++across == out_w) across = 0, y0 += sh;
    }
}
