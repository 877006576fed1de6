struct half {  /* bits in memory; it becomes a float for computing */
    uint16_t bits;
    half() = default;
    half(float x) : bits(half_of_float(x)) {}
    operator float() const { return float_of_half(bits); }
};
#define _Float16 half
