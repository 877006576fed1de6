/* A part of an image x [H, W, C], from row `top` and pixel `left` on; pixels outside of it are 0. */
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
