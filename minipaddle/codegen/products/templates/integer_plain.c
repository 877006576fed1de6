/* Products of $A with $B in int32_t. $terms terms are summed at once, and nothing saturates; sums of
   whole numbers wrap around. b is in panels, the columns of a tile, in groups of terms, after $header
   numbers: what sums begin with. */
#if !defined $needs || $guarded || $fill
static __attribute__((noinline)) void integer_plain_$F(
    const int64_t rows, int64_t groups, const $A *a, int64_t a_row, const $B *b, int32_t *c,
    int64_t c_row, int64_t n)
{
    for (int64_t i = 0; i < rows; i++, a += a_row, c += c_row) {
        uint32_t sum[$panel] = {0};
        if ($header) memcpy(sum, b, sizeof sum);
        for (int64_t k = 0; k < $terms * groups; k += $terms)
            for (int j = 0; j < $panel; j++)
                for (int t = 0; t < $terms; t++)
                    sum[j] += (uint32_t)((a[k + t]) * (b[$header + k * $panel + $terms * j + t]));
        for (int j = 0; j < n && j < $panel; j++) c[j] = (int32_t)sum[j];
    }
}
#endif
