/* total · x. Where total is below 2^-126, a processor takes a hundred cycles for a product. Its bits
   count 2^-149 there: the product of that count and x is exact in double, and rounds once. */
static float __attribute__((noinline)) multiply_small(float total, float x)
{
    uint32_t bits, other;
    uint64_t count;
    memcpy(&bits, &total, 4);
    memcpy(&other, &x, 4);
    const double product = (double)(bits << 1 >> 1) * x, size = product < 0 ? -product : product;
    if (!(size < 0x1p23)) return (float)((bits >> 31 ? -product : product) * 0x1p-149);
    const double rounded = size + 0x1p52; /* its last bits are the nearest whole number */
    memcpy(&count, &rounded, 8);
    bits = (bits ^ other) >> 31 << 31 | (uint32_t)count;
    memcpy(&total, &bits, 4);
    return total;
}
static inline float multiply_floats(float total, float x)
{
    uint32_t bits;
    memcpy(&bits, &total, 4);
    return (bits << 1) - 1 < 0xffffff ? multiply_small(total, x) : total * x;
}
