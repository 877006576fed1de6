/* Vectors of floats rounded to $E in memory. */
INLINE $bits rounded_$E(vector_float v)
{
    $rounded
}
INLINE void store_part_$E($E *p, int64_t n, vector_float v)
{
#if defined __AVX512F__
    __asm__("$put, %0%{%2%}" : "+m"(PART($E, p)) : "v"(rounded_$E(v)), "Yk"(first_float(n)));
#else
    for (int64_t i = 0; i < n && i < LANES_float; i++) p[i] = $narrow(v[i]);
#endif
}
INLINE void store_$E($E *p, vector_float v)
{
#if defined __AVX512F__
    __asm__("$put, %0" : "=m"(*($E (*)[LANES_float])p) : "v"(rounded_$E(v)));
#else
    UNROLL for (int i = 0; i < LANES_float; i++) p[i] = $narrow(v[i]);
#endif
}
