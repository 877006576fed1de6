#if defined __AVX512F__
enum { REGISTER = 64, TALL = 8, ACROSS = 2 };  /* bytes of a register; rows and vectors of a tile */
#elif defined __AVX__
enum { REGISTER = 32, TALL = 4, ACROSS = 3 };
#elif defined __aarch64__
enum { REGISTER = 16, TALL = 8, ACROSS = 2 };
#else
enum { REGISTER = 16, TALL = 4, ACROSS = 2 };
#endif
#define INLINE static inline __attribute__((always_inline))
#if defined __clang__
#define ONCE static __attribute__((noinline))
#else
#define ONCE static __attribute__((noinline, noclone))
#endif
#define UNROLL _Pragma("GCC unroll 16")
#ifdef __clang__  /* the memory from p on; clang needs to know where it ends */
#define PART(T, p) (*(T (*)[REGISTER / sizeof *(p)])(p))
#else
#define PART(T, p) (*(T (*)[])(p))
#endif
#define KEEP(p) __asm__("" : "+r"(p))  /* one pointer and offsets, no register for each row */
