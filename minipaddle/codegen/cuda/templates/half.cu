struct half {  /* bits in memory; it becomes a float for computing */
    uint16_t bits;
    half() = default;
    half(float x) : bits(half_of_float(x)) {}
    operator float() const { return float_of_half(bits); }
};
static inline float widen_half(half x) { return x; }
static inline half narrow_half(float x) { return x; }
static inline float round_half(float x) { return half(x); }
