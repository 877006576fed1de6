#if defined __clang__ && __clang_major__ < 15  /* it can only be stored, which is all we need */
#define _Float16 __fp16
#endif
