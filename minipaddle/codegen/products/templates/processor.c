#if defined __AVX512F__
enum { REGISTER = 64, TALL = 8 };  /* bytes of a register; rows of a tile */
#elif defined __AVX__
enum { REGISTER = 32, TALL = 6 };
#elif defined __aarch64__
enum { REGISTER = 16, TALL = 8 };
#else
enum { REGISTER = 16, TALL = 4 };
#endif
enum { ACROSS = 2 };  /* vectors of a tile where nothing else is said */
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
#ifdef __AVX__  /* a vector is in a register, not loaded again by each instruction that needs it */
#define HOLD(v) __asm__("" : "+v"(v))
#else
#define HOLD(v) ((void)0)
#endif
