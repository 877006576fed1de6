/* glibc has vector forms of these functions, which keep NaN and Inf */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define VECTOR __attribute__((__simd__("notinbranch")))
#else
#define VECTOR
#endif
