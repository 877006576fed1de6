/* The same in pairs of channels, of which there is an odd number C: the last one's neighbour is 0. */
static void frame_odd(pairs *to, int64_t rows, int64_t pixels, const bfloat16 *x, int64_t H, int64_t W,
                      int64_t C, int64_t top, int64_t left)
{
    const int64_t half = C / 2;
    for (int64_t h = top; h < top + rows; h++)
        for (int64_t w = left; w < left + pixels; w++, to += half + 1) {
            const bfloat16 *from = x + (h * W + w) * C;
            if (h < 0 || h >= H || w < 0 || w >= W) {
                memset(to, 0, (half + 1) * sizeof *to);
                continue;
            }
            for (int64_t c = 0; c < half; c++) to[c] = from[2 * c].bits | (uint32_t)from[2 * c + 1].bits << 16;
            to[half] = from[2 * half].bits;
        }
}
