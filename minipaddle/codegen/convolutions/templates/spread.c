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
