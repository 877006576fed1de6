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

static inline bfloat16 upper_half(float x)  /* of a number that is rounded */
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (bfloat16){(uint16_t)(bits >> 16)};
}

/* the same as `narrow`, not stored: loops over it need no vectors of 16 bits */
static inline float round_bfloat16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (x != x ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, 4);
    return x;
}
