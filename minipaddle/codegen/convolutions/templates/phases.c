/* A part of an image x [H, W], from row `top` and pixel `left` on, as D × A images: of every D-th
   row every A-th pixel. Pixels outside of the image are 0. */
INLINE void phases_$T($T *to, int64_t rows, int64_t pixels, const $T *x, int64_t H, int64_t W,
                      int64_t top, int64_t left, int64_t D, int64_t A)
{
    for (int64_t d = 0; d < D; d++)
        for (int64_t r = 0; r < rows; r++) {
            const int64_t h = top + r * D + d;
            for (int64_t a = 0; a < A; a++) {
                $T *line = to + ((d * A + a) * rows + r) * pixels;
                const int64_t first = left + a, last = h < 0 || h >= H ? first : W;
                int64_t begin = first >= 0 ? 0 : (A - 1 - first) / A, end = (last - first + A - 1) / A;
                begin = begin < pixels ? begin : pixels;
                end = end < begin ? begin : end < pixels ? end : pixels;
                for (int64_t j = 0; j < begin; j++) line[j] = 0;
                for (int64_t j = begin; j < end; j++) line[j] = x[h * W + first + j * A];
                for (int64_t j = end; j < pixels; j++) line[j] = 0;
            }
        }
}
