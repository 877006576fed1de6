/* The instructions for few bits in C, as the manuals of their processors define them, for processors
   that lack them: `-include` this before a kernel. */
#define __AVX512VNNI__ 1
#define __AVX512BF16__ 1
#define dot_fours(sum, x, y) \
    emulated_vpdpbusd(&(sum), (const unsigned char *)&(x), (const signed char *)&(y))
#define dot_twos(sum, x, y) emulated_vpdpwssd(&(sum), &(x), &(y))
#define dot_halves(sum, x, y) do { \
        const __typeof__(x) left = (x); \
        const __typeof__(y) right = (y); \
        emulated_vdpbf16ps(&(sum), (const unsigned short *)&left, (const unsigned short *)&right, \
                           sizeof left / 4); \
    } while (0)

/* sum += four products of an unsigned and a signed byte, without saturation */
static inline void emulated_vpdpbusd(void *sum, const unsigned char *x, const signed char *y)
{
    unsigned lanes[16];
    __builtin_memcpy(lanes, sum, sizeof lanes);
    for (int i = 0; i < 64; i++) lanes[i / 4] += (unsigned)(x[i] * y[i]);
    __builtin_memcpy(sum, lanes, sizeof lanes);
}

/* sum += two products of int16, without saturation */
static inline void emulated_vpdpwssd(void *sum, const void *x, const void *y)
{
    unsigned lanes[16];
    short a[32], b[32];
    __builtin_memcpy(lanes, sum, sizeof lanes);
    __builtin_memcpy(a, x, sizeof a);
    __builtin_memcpy(b, y, sizeof b);
    for (int i = 0; i < 32; i++) lanes[i / 2] += (unsigned)(a[i] * b[i]);
    __builtin_memcpy(sum, lanes, sizeof lanes);
}

static inline float emulated_flush(float x)
{
    return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x;
}

static inline float emulated_half(const unsigned short *p)
{
    unsigned short half;
    __builtin_memcpy(&half, p, 2);
    const unsigned bits = (unsigned)half << 16;
    float x;
    __builtin_memcpy(&x, &bits, 4);
    return emulated_flush(x);
}

/* sum += the product of odd numbers, then of even ones; denormal numbers are 0 */
static inline void emulated_vdpbf16ps(
    void *sum, const unsigned short *x, const unsigned short *y, int count)
{
    float lanes[16];
    __builtin_memcpy(lanes, sum, 4 * count);
    for (int i = 0; i < count; i++) {
        float lane = emulated_flush(lanes[i]);
        for (int t = 1; t >= 0; t--)
            lane = emulated_flush(__builtin_fmaf(
                emulated_half(x + 2 * i + t), emulated_half(y + 2 * i + t), lane));
        lanes[i] = lane;
    }
    __builtin_memcpy(sum, lanes, 4 * count);
}

/* Eight tiles of up to 16 rows of 64 bytes */
enum { has_tiles = 1 };
#define shape_tiles(shapes) __builtin_memcpy(&emulated_shapes, &(shapes), 64)
#define release_tiles() __builtin_memset(&emulated_shapes, 0, 64)
#define tile_zero(t) __builtin_memset(emulated_tiles[t], 0, 1024)
#define tile_load(t, p, row) emulated_move(t, (char *)(p), 4 * (row), 0)
#define tile_store(t, p, row) emulated_move(t, (char *)(p), 4 * (row), 1)
#define tile_multiply(c, a, b) emulated_tdpbf16ps(c, a, b)
#define tile_multiply_bytes(c, a, b) emulated_tdpbssd(c, a, b)

static _Thread_local struct {
    unsigned char palette, none[15];
    unsigned short bytes[16];
    unsigned char rows[16];
} emulated_shapes;
static _Thread_local char emulated_tiles[8][16][64];

static inline void emulated_move(int t, char *p, long row, int out)
{
    for (int i = 0; i < emulated_shapes.rows[t]; i++) {
        char *tile = emulated_tiles[t][i], *memory = p + i * row;
        __builtin_memcpy(out ? memory : tile, out ? tile : memory, emulated_shapes.bytes[t]);
    }
}

/* sums += the sum of products of even numbers and that of odd ones; denormal numbers are 0 */
static inline void emulated_tdpbf16ps(int c, int a, int b)
{
    for (int m = 0; m < emulated_shapes.rows[c]; m++)
        for (int n = 0; n < emulated_shapes.bytes[c] / 4; n++) {
            float sums[2] = {0, 0}, *to = (float *)emulated_tiles[c][m] + n;
            for (int k = 0; k < emulated_shapes.bytes[a] / 2; k++)
                sums[k % 2] = emulated_flush(__builtin_fmaf(
                    emulated_half((unsigned short *)emulated_tiles[a][m] + k),
                    emulated_half((unsigned short *)emulated_tiles[b][k / 2] + 2 * n + k % 2),
                    sums[k % 2]));
            *to = emulated_flush(emulated_flush(*to) + emulated_flush(sums[0] + sums[1]));
        }
}

/* c += a · b of signed bytes, without saturation: four neighbours of a row of b belong to a column */
static inline void emulated_tdpbssd(int c, int a, int b)
{
    for (int i = 0; i < emulated_shapes.rows[c]; i++)
        for (int j = 0; j < emulated_shapes.bytes[c]; j += 4) {
            unsigned sum;
            __builtin_memcpy(&sum, emulated_tiles[c][i] + j, 4);
            for (int k = 0; k < emulated_shapes.bytes[a]; k++)
                sum += (unsigned)((signed char)emulated_tiles[a][i][k]
                                  * (signed char)emulated_tiles[b][k / 4][j + k % 4]);
            __builtin_memcpy(emulated_tiles[c][i] + j, &sum, 4);
        }
}
