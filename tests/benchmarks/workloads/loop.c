/* Damped Newton steps on x^3 + x = a for 64 equations, by hand: a step and the error it leaves are
   one loop. */
#include <math.h>

enum { COUNT = 64 };
const long workspace = 0;

/* `all`: a, and where x goes */
void step(void *const *all)
{
    const float *a = all[0];
    float *x = all[1], top = a[0], worst = 0;
#pragma omp simd reduction(max : top, worst)
    for (int i = 0; i < COUNT; i++) {
        const float error = fabsf(2.0f - a[i]);
        top = a[i] > top ? a[i] : top;
        worst = error > worst ? error : worst;
        x[i] = 1;
    }
    while (worst > 1e-5f * top) {
        worst = 0;
#pragma omp simd reduction(max : worst)
        for (int i = 0; i < COUNT; i++) {
            const float was = x[i];
            const float now = was - 0.7f * (was * was * was + was - a[i]) / (3 * was * was + 1);
            const float error = fabsf(now * now * now + now - a[i]);
            worst = error > worst ? error : worst;
            x[i] = now;
        }
    }
}
