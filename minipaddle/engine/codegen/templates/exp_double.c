/* e^x, and 0 where x is far below 0: there glibc's vectors take ten times as long.
 * (The bound is a variable, because with a constant gcc makes a branch, and computes e^x after all.
 * It is weak, because all parts of a program share it.) */
__attribute__((weak, visibility("hidden"))) double lowest_exponent = -708.0;

static inline double exp_double(double x)
{
    const double y = exp(x < lowest_exponent ? lowest_exponent : x);
    return y < 4e-308 ? 0 : y;
}

#define exp(x) exp_double(x)
