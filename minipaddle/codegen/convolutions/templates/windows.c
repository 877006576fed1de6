/* columns[m, h, :] = the rows of `size` elements of the window of position m */
static void windows_$T($T *columns, const $T *a, int64_t step, int64_t row, int64_t M,
                       int64_t high, int64_t size)
{
    for (int64_t m = 0; m < M; m++, a += step)
        for (int64_t h = 0; h < high; h++, columns += size)
            memcpy(columns, a + h * row, size * sizeof($T));
}
