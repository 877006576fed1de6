struct half {  /* bits in memory; to compute with it, it becomes a float */
    uint16_t bits;
    half() = default;
    half(float x) : bits(half_of_float(x)) {}
    operator float() const { return float_of_half(bits); }
};
