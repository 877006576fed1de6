/* The same for any number of rows: tiles whose heights differ by one, since one of few rows would be
   slow. */
ONCE void rows0_$F(
    int64_t M, int64_t N, int64_t K, int64_t segments,
    const $A *A, int64_t a_row, int64_t a_step, int64_t a_segment,
    const $E *B, int64_t b_step, int64_t b_segment, int64_t b_panel,
    $T *C, int64_t c_row, int add, int64_t ahead, const $T *bias,
    const $T *bounds)
{
    const int64_t tiles = (M + ${tall} - 1) / ${tall}, low = tiles ? M / tiles : 0;
    const int64_t high = (M - low * tiles) * (low + 1);
#define ROWS(n) case n: \
        rows##n##_$F(count, N, K, segments, A, a_row, a_step, a_segment, B, b_step, b_segment, \
            b_panel, C, c_row, add, ahead, bias, bounds); \
        break;
    for (int part = 0; part < 2; part++) {
        const int64_t count = part ? M - high : high;
        switch (count ? low + 1 - part : 0) {
${cases}        }
        A += count * a_row;
        C += count * c_row;
    }
#undef ROWS
}
