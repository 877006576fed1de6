#if defined __clang__ && __clang_major__ < 15  /* a type to be stored, which is all we do with it */
#define _Float16 __fp16
#endif
