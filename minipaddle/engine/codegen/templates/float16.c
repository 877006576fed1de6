/* bits in memory: compilers make vectors of whole numbers, and few of them of _Float16 */
typedef struct { uint16_t bits; } float16;

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static inline float widen_half(float16 h)
{
    const uint32_t bits = (uint32_t)(h.bits & 0x7fff) << 13, sign = (uint32_t)(h.bits >> 15) << 31;
    const uint32_t number = bits_of(float_of(bits) * 0x1p112f);  /* denormal numbers, too */
    return float_of((bits >= 0x0f800000 ? bits | 0x7f800000 : number) | sign);
}

/* x as it would be read from a float16, to nearest, ties to even: adding a power of two 2^13 times
   as large as x, or as 2^-14, leaves the bits that are there; NaN stays NaN */
static inline float round_half(float x)
{
    const uint32_t sign = bits_of(x) & 0x80000000, bits = bits_of(x) ^ sign;
    const uint32_t power = bits & 0x7f800000, least = 0x38800000;
    const float large = float_of((power < least ? least : power) + (13 << 23)), y = float_of(bits);
    return float_of((y >= 65520.0f ? 0x7f800000 : bits_of((y + large) - large)) | sign);
}

static inline float16 narrow_half(float x)
{
    const uint32_t bits = bits_of(x), rest = bits & 0x7fffffff;
    const uint32_t small = bits_of(float_of(rest) + 0.5f) - 0x3f000000;  /* in units of 2^-24 */
    const uint32_t most = rest < 0x47800000 ? rest : 0x47800000;
    const uint32_t large = (most + (most >> 13 & 1) - 0x37fff001) >> 13;
    const uint32_t half = rest > 0x7f800000 ? 0x7e00 : rest < 0x38800000 ? small : large;
    return (float16){(uint16_t)(half | (bits >> 16 & 0x8000))};
}
