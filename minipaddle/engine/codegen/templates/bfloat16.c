typedef struct { uint16_t bits; } bfloat16;  /* the upper half of a float */

static inline float widen(bfloat16 h)
{
    uint32_t bits = (uint32_t)h.bits << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static inline bfloat16 narrow(float x)  /* to nearest, ties to even; NaN stays NaN */
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (x != x) return (bfloat16){(uint16_t)(bits >> 16 | 0x40)};
    return (bfloat16){(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
