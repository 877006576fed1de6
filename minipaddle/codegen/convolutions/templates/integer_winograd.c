/* Winograd's F(m×m, 3×3) in whole numbers, m = $m: a tile of S × S pixels makes m × m of the result,
   S = m + 2. Rows of G are multiplied by numbers that make them whole, columns of A by what is then
   missing, so that results are $unit times too large, and are divided without a remainder. */
#define EACH(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < n; i++)
enum { WINOGRAD_M_$m = $m, WINOGRAD_S_$m = $m + 2 };

static inline __attribute__((always_inline)) void winograd_in_$m(
    const shorts_16 *d, shorts_16 *v, int64_t s)
{
$into
}

typedef uint32_t sums_$m __attribute__((vector_size(2 * $panel)));
typedef int32_t loose_sums_$m __attribute__((vector_size(2 * $panel), aligned(4), may_alias));
static inline __attribute__((always_inline)) void winograd_out_$m(
    const sums_$m *x, sums_$m *y, int64_t s)
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
            shorts_16 d[S], v[S * S];
            for (int x = 0; x < S; x++) {
                EACH(y, S) d[y] = wide_int8_t(from + y * line + x * pixel);
                winograd_in_$m(d, v + x, S);
            }
            for (int y = 0; y < S; y++) {
                winograd_in_$m(v + y * S, d, 1);
                EACH(x, S) *(loose_shorts *)(V + (y * S + x) * all * C + k) = d[x];
            }
        }
    }
}

/* The results of a row of tiles: Aᵀ M A, `rows` by `columns` pixels of $panel channels, of which
   n count. M has for each place `all` rows of $panel numbers. With `add` they are added to c. */
static __attribute__((noinline)) void integer_winograd_output_$m(
    const int32_t *M, int64_t all, int64_t wide, int32_t *c, int64_t line, int64_t pixel,
    int64_t rows, int64_t columns, int64_t n, int add)
{
    enum { S = WINOGRAD_S_$m, m = WINOGRAD_M_$m, L = $panel / 2 };
    for (int64_t t = 0; t < wide; t++, M += $panel, c += m * pixel, columns -= m)
        for (int k = 0; k < $panel && k < n; k += L) {
            sums_$m x[S], y[m * S], z[m];
            for (int j = 0; j < S; j++) {
                EACH(i, S) x[i] = (sums_$m) *(loose_sums_$m *)(M + (i * S + j) * all * $panel + k);
                winograd_out_$m(x, y + j, S);
            }
            for (int i = 0; i < m && i < rows; i++) {
                winograd_out_$m(y + i * S, z, 1);
                for (int j = 0; j < m && j < columns; j++) {
                    int32_t *to = c + i * line + j * pixel + k;
                    loose_sums_$m sum = (loose_sums_$m)(z[j] * ${inverse}u) >> $shift;
                    if (n >= k + L) {
                        if (add) sum += *(loose_sums_$m *)to;
                        *(loose_sums_$m *)to = sum;
                    } else
                        for (int l = 0; l < n - k; l++) to[l] = (add ? to[l] : 0) + sum[l];
                }
            }
        }
}

/* U = G g Gᵀ of kernels [3, 3, c, n], in panels: for $panel columns, for chunks of so many terms, for
   each place, pairs of terms. */
static __attribute__((noinline)) void integer_winograd_kernels_$m(
    int16_t *U, const int8_t *g, int64_t c, int64_t n, int64_t C, int64_t chunk)
{
    enum { S = WINOGRAD_S_$m };
    static const int G[S][3] = {$G};
    for (int64_t j = 0; j < n; j += $panel)
        for (int64_t first = 0; first < C; first += chunk)
            for (int q = 0; q < S * S; q++)
                for (int64_t k = first; k < C && k < first + chunk; k += 2)
                    for (int64_t i = 0; i < 2 * $panel; i++) {
                        const int64_t in = k + i % 2, out = j + i / 2;
                        int sum = 0;
                        if (in < c && out < n)
                            for (int t = 0; t < 9; t++)
                                sum += G[q / S][t / 3] * G[q % S][t % 3] * g[(t * c + in) * n + out];
                        *U++ = sum;
                    }
}
