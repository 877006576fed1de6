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
