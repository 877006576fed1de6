/* Vectors of whole numbers, and how a group of neighbouring terms is multiplied and summed. */
typedef int8_t bytes_16 __attribute__((vector_size(16)));
typedef bytes_16 loose_bytes __attribute__((aligned(1), may_alias));
typedef int16_t shorts_16 __attribute__((vector_size(32)));
typedef shorts_16 loose_shorts __attribute__((aligned(2), may_alias));
typedef int32_t words_8 __attribute__((vector_size(32)));
typedef uint32_t counts_8 __attribute__((vector_size(32)));
typedef words_8 loose_words __attribute__((aligned(4), may_alias));
typedef int32_t words_16 __attribute__((vector_size(64)));
typedef words_16 loose_words_16 __attribute__((aligned(1), may_alias));
typedef int32_t loose_word __attribute__((aligned(1), may_alias));
#define floats_of(lanes, p) (*(const loose_floats_##lanes *)(p))
#define all_of(lanes, x) ((floats_##lanes){0} + (x))
#define float_lanes(name, to, x, y) __asm__(name " %2, %1, %0" : "=v"(to) : "v"(x), "v"(y))
typedef char chars_32 __attribute__((vector_size(32)));
#if defined __AVX2__ && !defined __clang__  /* GCC makes five instructions of the conversion */
typedef char chars_16 __attribute__((vector_size(16)));
#define wide_bytes(v) ((shorts_16)__builtin_ia32_pmovsxbw256((chars_16)(v)))
#else
#define wide_bytes(v) __builtin_convertvector(v, shorts_16)
#endif
#define wide_int8_t(p) wide_bytes(*(const loose_bytes *)(p))
#define wide_int16_t(p) (*(const loose_shorts *)(p))
#define as_it_lies(p) (*(const loose_words_16 *)(p))
#define dot_pairs(sum, x, y) \
    ((sum) += (counts_8)__builtin_ia32_pmaddwd256((shorts_16)(x), (shorts_16)(y)))
#define bytes_32(p) (*(const loose_words *)(p))
#define dot_bytes(sum, x, y) \
    ((sum) += (counts_8)__builtin_ia32_pmaddwd256( \
        (shorts_16)__builtin_ia32_pmaddubsw256((chars_32)(x), (chars_32)(y)), (shorts_16){0} + 1))
#ifndef dot_fours  /* tests give C in place of these instructions */
#define dot_fours(sum, x, y) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#define dot_twos(sum, x, y) __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#endif
