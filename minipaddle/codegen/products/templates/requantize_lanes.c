/* $lanes columns of a row as whole numbers that are not packed yet (see `requantize`). `small`
   numbers need no bounds before they are packed, which clips them to [-128, 127]. */
#ifdef $needs
typedef float floats_$lanes __attribute__((vector_size(4 * $lanes)));
typedef floats_$lanes loose_floats_$lanes __attribute__((aligned(4), may_alias));
typedef words_$lanes loose_sums_$lanes __attribute__((aligned(4), may_alias));
static inline __attribute__((always_inline)) words_$lanes requantize_$lanes(
    const int32_t *sum, const float high, const float *step, const float *bias, const float *more,
    float *floats, const int clipped, const float low, const float top, const float unit,
    const int small)
{
    words_$lanes q;
    floats_$lanes t = __builtin_convertvector(*(const loose_sums_$lanes *)sum, floats_$lanes), y;
    t = t * floats_of($lanes, step) * (1 / high) + floats_of($lanes, bias);
    if (!small) {
        if (more) t = floats_of($lanes, more) + t;
        if (clipped) float_lanes("vmaxps", t, all_of($lanes, low), t);
        if (floats) {
            y = t;
            if (clipped) float_lanes("vminps", y, all_of($lanes, top), t);
            *(loose_floats_$lanes *)floats = y;
        }
    }
    t = t * unit;
    const float most = clipped && top * unit < 127.0f ? top * unit : 127.0f;
    if (!small) float_lanes("vminps", t, all_of($lanes, most), t);
    __asm__("vcvtps2dq %1, %0" : "=v"(q) : "v"(t));
    return q;
}
#endif
