/* Whole numbers in the order of the values, and back; NaN is the largest. */
static inline uint32_t key_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return x != x ? UINT32_MAX : bits ^ ((bits >> 31 ? UINT32_MAX : 0) | 1u << 31);
}

static inline float value_float(uint32_t key)
{
    float x;
    key ^= (key >> 31 ? 0 : UINT32_MAX) | 1u << 31;
    memcpy(&x, &key, 4);
    return x;
}

static inline uint64_t key_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return x != x ? UINT64_MAX : bits ^ ((bits >> 63 ? UINT64_MAX : 0) | 1ull << 63);
}

static inline double value_double(uint64_t key)
{
    double x;
    key ^= (key >> 63 ? 0 : UINT64_MAX) | 1ull << 63;
    memcpy(&x, &key, 8);
    return x;
}
