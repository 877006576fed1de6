/* e^x far below 0 takes glibc's vectors ten times as long: there it is 0.
 * (The bound is a variable: with a constant gcc makes a branch, and computes e^x after all; a weak
 * one, as all parts of a program share it.) */
__attribute__((weak, visibility("hidden"))) double lowest_exponent = -708.0;

static inline double exp_double(double x)
{
    const double y = exp(x < lowest_exponent ? lowest_exponent : x);
    return y < 4e-308 ? 0 : y;
}

#define exp(x) exp_double(x)
