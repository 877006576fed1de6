/* erf x = x p(x^2) / q(x^2) up to 4.1, where it is 1: within 7 ulp, in half of glibc's time. */
static inline float erf_float(float x)
{
    x = x < -4.1f ? -4.1f : x;
    x = x > 4.1f ? 4.1f : x;
    const float t = x * x;
    float p = 2.04196739e-6f, q = 3.80040224e-5f;
    p = p * t + 2.84808277e-4f, q = q * t + 1.16521164e-3f;
    p = p * t + 3.77960691e-3f, q = q * t + 1.49974329e-2f;
    p = p * t + 5.27902778e-2f, q = q * t + 0.114257511f;
    p = p * t + 0.190783817f, q = q * t + 0.502410475f;
    p = p * t + 1.12837915f, q = q * t + 1;
    const float y = x * p / q;
    return y < -1 ? -1 : y > 1 ? 1 : y;
}

#define erff(x) erf_float(x)
