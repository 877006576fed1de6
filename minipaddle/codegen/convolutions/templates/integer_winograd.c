/* Winograd's F(m×m, 3×3) in whole numbers, m = $m: a tile of S × S pixels makes m × m of the result,
   S = m + 2. Rows of G are multiplied by numbers that make them whole, columns of A by what is then
   missing, so that results are $unit times too large, and are divided without a remainder. */
enum { WINOGRAD_M_$m = $m, WINOGRAD_S_$m = $m + 2 };

static inline __attribute__((always_inline)) void winograd_in_$m(
    const shorts_16 *d, int64_t s, shorts_16 *v)
{
$into
}

static inline __attribute__((always_inline)) void winograd_out_$m(
    const counts_8 *x, int64_t s, counts_8 *y)
{
$back
}

/* V = Bᵀ d B of a row of tiles. V has for each of S · S places `all` rows of C numbers, of which a
   tile is one. Pixels outside of the image [h, w, c] are 0; C is c, or more with zeros at the end. */
static __attribute__((noinline)) void integer_winograd_input_$m(
    int16_t *V, int64_t all, int64_t wide, const int8_t *image, int64_t h, int64_t w, int64_t c,
    int64_t C, int64_t top, int64_t left, int8_t *patch)
{
    enum { S = WINOGRAD_S_$m };
    for (int64_t t = 0; t < wide; t++, V += C, left += WINOGRAD_M_$m) {
        const int8_t *from = image + (top * w + left) * c;
        int64_t line = w * c, pixel = c;
        if (C != c || top < 0 || left < 0 || top + S > h || left + S > w) {
            memset(patch, 0, S * S * C);
            for (int64_t y = 0; y < S; y++)
                for (int64_t x = 0; x < S; x++)
                    if (top + y >= 0 && top + y < h && left + x >= 0 && left + x < w)
                        memcpy(patch + (y * S + x) * C, from + y * line + x * c, c);
            from = patch, line = S * C, pixel = C;
        }
        for (int64_t k = 0; k < C; k += 16, from += 16) {
            shorts_16 d[S * S], v[S * S];
            for (int y = 0; y < S; y++)
                for (int x = 0; x < S; x++)
                    d[y * S + x] = wide_int8_t(from + y * line + x * pixel);
            for (int x = 0; x < S; x++) winograd_in_$m(d + x, S, v + x);
            for (int y = 0; y < S; y++) winograd_in_$m(v + y * S, 1, d + y * S);
            for (int q = 0; q < S * S; q++) *(loose_shorts *)(V + q * all * C + k) = d[q];
        }
    }
}

/* The results of a row of tiles: Aᵀ M A, `rows` by `columns` pixels of 16 channels, of which n
   count. M has for each place `all` rows of 16 numbers. With `add` they are added to c. */
static __attribute__((noinline)) void integer_winograd_output_$m(
    const int32_t *M, int64_t all, int64_t wide, int32_t *c, int64_t line, int64_t pixel,
    int64_t rows, int64_t columns, int64_t n, int add)
{
    enum { S = WINOGRAD_S_$m, m = WINOGRAD_M_$m };
    for (int64_t t = 0; t < wide; t++, M += 16, c += m * pixel, columns -= m)
        for (int half = 0; half < 2 && 8 * half < n; half++) {
            counts_8 x[S * S], y[m * S], z[m * m];
            for (int q = 0; q < S * S; q++)
                x[q] = (counts_8) *(const loose_words *)(M + q * all * 16 + 8 * half);
            for (int j = 0; j < S; j++) winograd_out_$m(x + j, S, y + j);
            for (int i = 0; i < m; i++) winograd_out_$m(y + i * S, 1, z + i * m);
            for (int i = 0; i < m && i < rows; i++)
                for (int j = 0; j < m && j < columns; j++) {
                    int32_t *to = c + i * line + j * pixel + 8 * half;
                    words_8 sum = (words_8)(z[i * m + j] * ${inverse}u) >> $shift;
                    if (n >= 8 * half + 8) {
                        if (add) sum += *(loose_words *)to;
                        *(loose_words *)to = sum;
                    } else
                        for (int k = 0; k < n - 8 * half; k++) to[k] = (add ? to[k] : 0) + sum[k];
                }
        }
}

/* U = G g Gᵀ of kernels [3, 3, c, n], in panels: for 16 columns, for chunks of so many terms, for
   each place, pairs of terms. */
static __attribute__((noinline)) void integer_winograd_kernels_$m(
    int16_t *U, const int8_t *g, int64_t c, int64_t n, int64_t C, int64_t chunk)
{
    enum { S = WINOGRAD_S_$m };
    static const int G[S][3] = {$G};
    for (int64_t j = 0; j < n; j += 16)
        for (int64_t first = 0; first < C; first += chunk)
            for (int q = 0; q < S * S; q++)
                for (int64_t k = first; k < C && k < first + chunk; k += 2)
                    for (int64_t i = 0; i < 32; i++) {
                        const int64_t in = k + i % 2, out = j + i / 2;
                        int sum = 0;
                        if (in < c && out < n)
                            for (int t = 0; t < 9; t++)
                                sum += G[q / S][t / 3] * G[q % S][t % 3] * g[(t * c + in) * n + out];
                        *U++ = sum;
                    }
}
