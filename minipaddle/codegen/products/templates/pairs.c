/* Two neighbouring terms in bfloat16, which are multiplied and summed at once. */
typedef uint32_t pairs __attribute__((may_alias));
typedef uint32_t bits_pairs __attribute__((vector_size(REGISTER), may_alias));
enum { LANES_pairs = LANES_float, PANEL_pairs = PANEL_float };
#define load_pairs(p) load_float((const float *)(p))
#define load_lanes_pairs(p, there) load_lanes_float((const float *)(p), there)
#if !defined dot_halves && defined __AVX512BF16__  /* tests give C in place of this instruction */
#define dot_halves(sum, x, y) __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#elif !defined dot_halves
#define dot_halves(sum, x, y) do { \
        const bits_pairs X = (bits_pairs)(x), Y = (bits_pairs)(y); \
        sum += (vector_float)(X & 0xffff0000) * (vector_float)(Y & 0xffff0000); \
        sum += (vector_float)(X << 16) * (vector_float)(Y << 16); \
    } while (0)
#endif
/* to[n] = the pair of from[n] and the one that is `apart` from it */
INLINE void zip_pairs(int64_t N, const bfloat16 *from, int64_t apart, pairs *to)
{
    const uint16_t *low = (const uint16_t *)from, *high = low + apart;
    for (int64_t n = 0; n < N; n++) to[n] = low[n] | (uint32_t)high[n] << 16;
}
/* to[n] = the pair of from[n * column] and 0 */
INLINE void pair_with_zeros(int64_t N, const bfloat16 *from, int64_t column, pairs *to)
{
    for (int64_t n = 0; n < N; n++) to[n] = from[n * column].bits;
}
