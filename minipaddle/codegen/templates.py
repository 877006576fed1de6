"""C text of what convolutions need beside the tiles of `gemm`."""

from string import Template

FRAME = Template("""\
/* A part of an image x [H, W, C], from row `top` and pixel `left` on; what lies outside is 0. */
static void frame_$T($T *to, int64_t rows, int64_t pixels, const $T *x, int64_t H, int64_t W,
                     int64_t C, int64_t top, int64_t left)
{
    const int64_t before = left >= 0 ? 0 : -left < pixels ? -left : pixels;
    int64_t inside = W - left - before;
    inside = inside < 0 ? 0 : inside < pixels - before ? inside : pixels - before;
    const int64_t after = pixels - before - inside;
    for (int64_t h = top; h < top + rows; h++, to += pixels * C) {
        if (h < 0 || h >= H) {
            memset(to, 0, pixels * C * sizeof($T));
            continue;
        }
        memset(to, 0, before * C * sizeof($T));
        if (inside)
            memcpy(to + before * C, x + (h * W + left + before) * C, inside * C * sizeof($T));
        memset(to + (before + inside) * C, 0, after * C * sizeof($T));
    }
}
""")

TURNED = Template("""\
/* to[o, g, c] = from[c, g, o]: the weights of one tap with inputs and outputs exchanged */
static void turned_$T($T *to, const $T *from, int64_t C, int64_t O, int64_t groups)
{
    for (int64_t o = 0; o < O; o++)
        for (int64_t g = 0; g < groups; g++)
            for (int64_t c = 0; c < C; c++)
                to[(o * groups + g) * C + c] = from[(c * groups + g) * O + o];
}
""")

DEPTHWISE = Template("""\
/* c[p, :] = the sum over a window of taps of a[pixel, :] * b[tap, :], for M pixels */
static void depthwise_$T(int64_t M, int64_t C, int64_t high, int64_t wide, const $T *a,
                         int64_t a_row, int64_t down, int64_t across, const $T *b, $T *c,
                         int64_t c_row)
{
    for (int64_t m = 0; m < M; m++, a += a_row, c += c_row)
        for (int64_t k = 0; k < C; k += LANES_$T) {
            const int full = C - k >= LANES_$T;
            const $T *weight = b + k;
            vector_$T sum = {0};
            for (int64_t t = 0; t < high; t++)
                for (int64_t u = 0; u < wide; u++, weight += C) {
                    const $T *p = a + t * down + u * across + k;
                    sum += full ? load_$T(p) * load_$T(weight)
                                : load_part_$T(p, C - k) * load_part_$T(weight, C - k);
                }
            if (full) store_$T(c + k, sum);
            else store_part_$T(c + k, C - k, sum);
        }
}
""")

DEPTHWISE_WEIGHT = Template("""\
/* sum[tap, :] += the sum over pixels of a[pixel met, :] * g[pixel, :] */
static void depthwise_weight_$T(int64_t rows, int64_t M, int64_t C, int64_t high, int64_t wide,
                                const $T *a, int64_t a_row, int64_t a_line, int64_t down,
                                int64_t across, const $T *g, $T *sum)
{
    for (int64_t t = 0; t < high; t++)
        for (int64_t u = 0; u < wide; u++, sum += C)
            for (int64_t k = 0; k < C; k += LANES_$T) {
                const int full = C - k >= LANES_$T;
                vector_$T total = {0};
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t m = 0; m < M; m++) {
                        const $T *p = a + r * a_line + m * a_row + t * down + u * across + k;
                        const $T *q = g + (r * M + m) * C + k;
                        total += full ? load_$T(p) * load_$T(q)
                                      : load_part_$T(p, C - k) * load_part_$T(q, C - k);
                    }
                if (full) store_$T(sum + k, load_$T(sum + k) + total);
                else store_part_$T(sum + k, C - k, load_part_$T(sum + k, C - k) + total);
            }
}
""")

WINDOWS = Template("""\
/* columns[m, h, :] = the rows of `size` elements of the window of position m */
static void windows_$T($T *columns, const $T *a, int64_t step, int64_t row, int64_t M,
                       int64_t high, int64_t size)
{
    for (int64_t m = 0; m < M; m++, a += step)
        for (int64_t h = 0; h < high; h++, columns += size)
            memcpy(columns, a + h * row, size * sizeof($T));
}
""")

SPREAD = Template("""\
/* image[h, pixel m · step ...] += columns[m, h, :], a window's rows of `size` elements */
static void spread_$T($T *image, int64_t row, int64_t step, const $T *columns, int64_t M,
                      int64_t high, int64_t size)
{
    for (int64_t m = 0; m < M; m++)
        for (int64_t h = 0; h < high; h++, columns += size) {
            $T *to = image + h * row + m * step;
            int64_t k = 0;
            for (; k + LANES_$T <= size; k += LANES_$T)
                store_$T(to + k, load_$T(to + k) + load_$T(columns + k));
            store_part_$T(to + k, size - k,
                          load_part_$T(to + k, size - k) + load_part_$T(columns + k, size - k));
        }
}
""")
