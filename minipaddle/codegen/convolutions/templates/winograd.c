/* U[16] = G g Gᵀ, each in panels of `panel` columns [O / panel][C][panel], from g[3][3][C][O] */
ONCE void winograd_kernels_$T($T *U, const $T *g, int64_t C, int64_t O, int64_t panel)
{
    const int64_t n = C * O, apart = (O + panel - 1) / panel * panel * C;
    for (int64_t c = 0; c < C; c++, g += O)
        for (int64_t o = 0; o < O; o += LANES_$T) {
            const lanes_$T there = first_$T(O - o);
            vector_$T t[4][3];
            UNROLL for (int j = 0; j < 3; j++) {
                const vector_$T a = load_lanes_$T(g + j * n + o, there),
                                b = load_lanes_$T(g + (3 + j) * n + o, there),
                                d = load_lanes_$T(g + (6 + j) * n + o, there);
                t[0][j] = a, t[1][j] = (a + b + d) * ($T)0.5;
                t[2][j] = (a - b + d) * ($T)0.5, t[3][j] = d;
            }
            UNROLL for (int j = 0; j < 4; j++) {
                const vector_$T a = t[j][0], b = t[j][1], d = t[j][2];
                $T *u = U + 4 * j * apart + (o / panel * C + c) * panel + o % panel;
                store_lanes_$T(u, there, a);
                store_lanes_$T(u + apart, there, (a + b + d) * ($T)0.5);
                store_lanes_$T(u + 2 * apart, there, (a - b + d) * ($T)0.5);
                store_lanes_$T(u + 3 * apart, there, d);
            }
        }
}

/* V[16][high * wide][C] = Bᵀ d B for the tiles of an image whose rows are `row` apart */
INLINE void winograd_tile_$T(const int full, int64_t left, $T *V, const $T *d, int64_t row,
                             int64_t C, int64_t apart)
{
    const lanes_$T there = first_$T(left);
    vector_$T t[4][4];
    UNROLL for (int j = 0; j < 4; j++) {
        vector_$T x[4];
        UNROLL for (int i = 0; i < 4; i++) {
            const $T *p = d + i * row + j * C;
            x[i] = full ? load_$T(p) : load_lanes_$T(p, there);
        }
        t[0][j] = x[0] - x[2], t[1][j] = x[1] + x[2];
        t[2][j] = x[2] - x[1], t[3][j] = x[1] - x[3];
    }
    UNROLL for (int i = 0; i < 4; i++) {
        const vector_$T v[4] = {t[i][0] - t[i][2], t[i][1] + t[i][2], t[i][2] - t[i][1],
                                t[i][1] - t[i][3]};
        UNROLL for (int j = 0; j < 4; j++) {
            $T *p = V + (4 * i + j) * apart;
            if (full) store_$T(p, v[j]);
            else store_lanes_$T(p, there, v[j]);
        }
    }
}
ONCE void winograd_input_$T($T *V, const $T *image, int64_t row, int64_t C, int64_t high,
                            int64_t wide)
{
    const int64_t apart = high * wide * C;
    for (int64_t h = 0; h < high; h++)
        for (int64_t w = 0; w < wide; w++, V += C)
            for (int64_t c = 0; c < C; c += LANES_$T) {
                const $T *d = image + 2 * h * row + 2 * w * C + c;
                if (C - c >= LANES_$T) winograd_tile_$T(1, 0, V + c, d, row, C, apart);
                else winograd_tile_$T(0, C - c, V + c, d, row, C, apart);
            }
}

/* out[2 * high][2 * wide][O] = Aᵀ M A, only inside of rows × columns */
ONCE void winograd_output_$T(const $T *M, $T *out, int64_t row, int64_t O, int64_t high,
                             int64_t wide, int64_t rows, int64_t columns)
{
    const int64_t apart = high * wide * O;
    for (int64_t h = 0; 2 * h < rows; h++)
        for (int64_t w = 0; w < wide; w++)
            for (int64_t o = 0; o < O; o += LANES_$T) {
                const $T *m = M + (h * wide + w) * O + o;
                const lanes_$T there = first_$T(O - o);
                vector_$T t[2][4];
                UNROLL for (int j = 0; j < 4; j++) {
                    vector_$T x[4];
                    UNROLL for (int i = 0; i < 4; i++) {
                        const $T *p = m + (4 * i + j) * apart;
                        x[i] = load_lanes_$T(p, there);
                    }
                    t[0][j] = x[0] + x[1] + x[2], t[1][j] = x[1] - x[2] - x[3];
                }
                $T *to = out + 2 * h * row + 2 * w * O + o;
                UNROLL for (int i = 0; i < 2; i++) {
                    if (2 * h + i >= rows) break;
                    store_lanes_$T(to + i * row, there, t[i][0] + t[i][1] + t[i][2]);
                    if (2 * w + 1 < columns)
                        store_lanes_$T(to + i * row + O, there, t[i][1] - t[i][2] - t[i][3]);
                }
            }
}
