/* Eight numbers of one byte as int32. */
typedef int32_t ints_8 __attribute__((vector_size(32)));
#ifdef __AVX2__
typedef long long loose_eight __attribute__((aligned(1), may_alias));
typedef long long two_eights __attribute__((vector_size(16)));
typedef char chars_16 __attribute__((vector_size(16)));
static inline __attribute__((always_inline)) ints_8 eight_bytes(const int8_t *p)
{
    return (ints_8)__builtin_ia32_pmovsxbd256((chars_16)(two_eights){*(const loose_eight *)p, 0});
}
#else
static inline ints_8 eight_bytes(const int8_t *p)
{
    return (ints_8){p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]};
}
#endif
