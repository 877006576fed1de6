${alias}typedef $T vector_$T __attribute__((vector_size($register)));
typedef $T loose_$T __attribute__((vector_size($register), aligned(sizeof($T)), may_alias));
enum { LANES_$T = $register / sizeof($T), PANEL_$T = ACROSS * LANES_$T };

INLINE vector_$T load_$T(const $T *p) { return *(const loose_$T *)p; }
INLINE void store_$T($T *p, vector_$T v) { *(loose_$T *)p = v; }

/* Only the first lanes: the others are read as 0 and never written. The instructions are here
   because their header takes as long to compile as everything else. */
#if defined __AVX512F__
typedef uint16_t lanes_$T;
INLINE lanes_$T first_$T(int64_t n)  /* n of them, none for n <= 0 */
{
    return n >= LANES_$T ? 0xffff : n > 0 ? (1u << n) - 1 : 0;
}
INLINE vector_$T load_lanes_$T(const $T *p, lanes_$T there)
{
    vector_$T v;
    __asm__("vmovu$ps %1, %0%{%2%}%{z%}" : "=v"(v) : "m"(PART(const $T, p)), "Yk"(there));
    return v;
}
INLINE void store_lanes_$T($T *p, lanes_$T there, vector_$T v)
{
    __asm__("vmovu$ps %1, %0%{%2%}" : "+m"(PART($T, p)) : "v"(v), "Yk"(there));
}
#elif defined __AVX__
typedef $I lanes_$T __attribute__((vector_size($register)));
INLINE lanes_$T first_$T(int64_t n)
{
    return (lanes_$T)$lanes < ($I)(n < LANES_$T ? n : LANES_$T);
}
INLINE vector_$T load_lanes_$T(const $T *p, lanes_$T there)
{
    vector_$T v;
    __asm__("vmaskmov$ps %1, %2, %0" : "=x"(v) : "m"(PART(const $T, p)), "x"(there));
    return v;
}
INLINE void store_lanes_$T($T *p, lanes_$T there, vector_$T v)
{
    __asm__("vmaskmov$ps %1, %2, %0" : "+m"(PART($T, p)) : "x"(v), "x"(there));
}
#else
typedef int64_t lanes_$T;
INLINE lanes_$T first_$T(int64_t n) { return n; }
INLINE vector_$T load_lanes_$T(const $T *p, lanes_$T there)
{
    vector_$T v = {0};
    if (there >= LANES_$T) return load_$T(p);
    UNROLL for (int i = 0; i < LANES_$T; i++) if (i < there) v[i] = p[i];
    return v;
}
INLINE void store_lanes_$T($T *p, lanes_$T there, vector_$T v)
{
    if (there >= LANES_$T) store_$T(p, v);
    else UNROLL for (int i = 0; i < LANES_$T; i++) if (i < there) p[i] = v[i];
}
#endif
/* The end of a sum: a bias is added, and it is clipped to bounds, low and high. NaN stays. */
INLINE vector_$T finished_$T(vector_$T v, vector_$T bias, const $T *bounds)
{
    v += bias;
#if defined __AVX__
    const vector_$T low = bounds[0] - (vector_$T){0}, high = bounds[1] - (vector_$T){0};
    __asm__("vmax$ps %1, %2, %0" : "=v"(v) : "v"(v), "v"(low));
    __asm__("vmin$ps %1, %2, %0" : "=v"(v) : "v"(v), "v"(high));
#else
    UNROLL for (int i = 0; i < LANES_$T; i++) {
        v[i] = v[i] < bounds[0] ? bounds[0] : v[i];
        v[i] = v[i] > bounds[1] ? bounds[1] : v[i];
    }
#endif
    return v;
}
INLINE vector_$T load_part_$T(const $T *p, int64_t n) { return load_lanes_$T(p, first_$T(n)); }
INLINE void store_part_$T($T *p, int64_t n, vector_$T v) { store_lanes_$T(p, first_$T(n), v); }
