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
        for (int64_t k = 0; k < K || k % $fill; k += $terms, panels += $terms * $panel) {
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
