/* c = a · b for M rows of a, whose terms are in groups, and all panels of N columns of b. */
static void integer_rows_$F(
    int64_t M, int64_t N, int64_t groups, const $A *a, const $B *panels, int32_t *c, int64_t c_row)
{
#if $guarded  /* NaN is -128 behind a ReLU, too, and a scale may be negative */
    $A any = 0;
    for (int64_t k = 0; k < M * $terms * groups; k++) any |= a[k];
    if (any < 0) {
        for (int64_t n = 0; n < N; n += $panel, panels += $terms * $panel * groups)
            integer_plain_$F(M, groups, a, $terms * groups, panels, c + n, c_row, N - n);
        return;
    }
#endif
    for (int64_t n = 0; n < N; n += $panel, panels += $header + $terms * $panel * groups)
        integer_panel_$F(M, N - n, groups, a, $terms * groups, panels, c + n, c_row);
}

/* A matrix of K rows and N columns in panels; a term or a column that is not there is 0. Where the
   left side is 128 too large, a panel begins with what its sums lack: -128 times those of b. */
static __attribute__((noinline)) void integer_panels_$F(
    int64_t N, int64_t K, const int8_t *restrict b, int64_t n_step, int64_t k_step, $B *restrict panels)
{
    for (int64_t n = 0; n < N; n += $panel) {
        if ($header) {
            int32_t begin[$panel] = {0};
            for (int64_t k = 0; k < K; k++)
                for (int64_t j = 0; j < $panel && n + j < N; j++)
                    begin[j] -= 128 * (int)(b[(n + j) * n_step + k * k_step]);
            memcpy(panels, begin, sizeof begin);
            panels += $header;
        }
        for (int64_t k = 0; k < K; k += $terms, panels += $terms * $panel) {
            if (n_step == 1 && n + $panel <= N && k + $terms <= K) {
                const int8_t *from = b + n + k * k_step;
                for (int64_t j = 0; j < $panel; j++)
                    for (int64_t t = 0; t < $terms; t++)
                        panels[$terms * j + t] = (from[j + t * k_step]);
                continue;
            }
            for (int64_t j = 0; j < $panel; j++)
                for (int64_t t = 0; t < $terms; t++)
                    panels[$terms * j + t] =
                        n + j < N && k + t < K ? (b[(n + j) * n_step + (k + t) * k_step]) : 0;
        }
    }
}
