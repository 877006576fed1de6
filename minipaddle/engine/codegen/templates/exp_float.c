/* e^x = 2^n e^r, |r| <= log(2) / 2, within 1 ulp, and 0 below 2e-38. glibc's vectors take four
 * times as long where a lane is far below 0, as for masked scores, or above all numbers. */
static inline float exp_float(float x)
{
    x = x < -87.0f ? -87.0f : x;
    x = x > 89.0f ? 89.0f : x;
    const float n = (x * 1.44269504f + 0x1.8p23f) - 0x1.8p23f;  /* no fraction fits beside it */
    const float r = (x - n * 0.693145752f) - n * 1.42860682e-6f;
    float p = 0.00138145405f;
    p = p * r + 0.00836874512f;
    p = p * r + 0.0416683908f;
    p = p * r + 0.166665204f;
    p = p * r + 0.499999934f;
    p = (p * (r * r) + r) + 1;
    const uint32_t bits = (uint32_t)((int32_t)n + 126) << 23;  /* of 2^(n - 1) */
    float half;
    memcpy(&half, &bits, sizeof half);
    const float y = (p + p) * half;
    return y < 2e-38f ? 0 : y;
}

#define expf(x) exp_float(x)
