/* c = a · b for M rows of a, whose terms are in pairs, and all panels of N columns of b. */
static void integer_rows(
    int64_t M, int64_t N, int64_t pairs, const int16_t *a, const int8_t *panels, int32_t *c,
    int64_t c_row)
{
    for (int64_t n = 0; n < N; n += INTEGER_PANEL, panels += 2 * INTEGER_PANEL * pairs)
        integer_panel_int8_t(M, N - n, pairs, a, 2 * pairs, panels, c + n, c_row);
}

/* A matrix of K rows and N columns in panels; a term or a column that is not there is 0. */
static __attribute__((noinline)) void integer_panels(
    int64_t N, int64_t K, const int8_t *b, int64_t n_step, int64_t k_step, int8_t *panels)
{
    for (int64_t n = 0; n < N; n += INTEGER_PANEL)
        for (int64_t k = 0; k < K; k += 2, panels += 2 * INTEGER_PANEL) {
            if (n_step == 1 && n + INTEGER_PANEL <= N && k + 1 < K) {
                const bytes_16 x = *(const loose_bytes *)(b + n + k * k_step);
                const bytes_16 y = *(const loose_bytes *)(b + n + (k + 1) * k_step);
                *(loose_bytes *)panels = __builtin_shufflevector(
                    x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
                *(loose_bytes *)(panels + INTEGER_PANEL) = __builtin_shufflevector(
                    x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
                continue;
            }
            for (int64_t j = 0; j < INTEGER_PANEL; j++)
                for (int64_t t = 0; t < 2; t++)
                    panels[2 * j + t] =
                        n + j < N && k + t < K ? b[(n + j) * n_step + (k + t) * k_step] : 0;
        }
}
