/* $E in memory, float in vectors. A tile reads it from panels, which are whole. */
enum { LANES_$E = LANES_float, PANEL_$E = PANEL_float };
#define load_lanes_$E(p, there) load_$E(p)
typedef uint32_t bits_$E __attribute__((vector_size(REGISTER), unused));
INLINE vector_float load_$E(const $E *p)
{
    vector_float v;
#if defined $needs
    __asm__("$widen %1, %0" : "=v"(v) : "m"(*(const char (*)[REGISTER / 2])p));
    return $finish;
#else
    UNROLL for (int i = 0; i < LANES_float; i++) v[i] = $one(p[i]);
    return v;
#endif
}
INLINE vector_float load_part_$E(const $E *p, int64_t n)
{
#if defined __AVX512F__
    vector_float v;
    __asm__("$widen %1, %0%{%2%}%{z%}" : "=v"(v) : "m"(PART(const $E, p)), "Yk"(first_float(n)));
    return $finish;
#else
    $E some[LANES_float];
    if (n >= LANES_float) return load_$E(p);
    memset(some, 0, sizeof some);
    for (int64_t i = 0; i < n; i++) some[i] = p[i];
    return load_$E(some);
#endif
}
