/* Vectors of whole numbers. */
enum { INTEGER_ROWS = $rows, INTEGER_PANEL = 16 };
typedef int8_t bytes_16 __attribute__((vector_size(16)));
typedef bytes_16 loose_bytes __attribute__((aligned(1), may_alias));
typedef int16_t shorts_16 __attribute__((vector_size(32)));
typedef shorts_16 loose_shorts __attribute__((aligned(2), may_alias));
typedef int32_t words_8 __attribute__((vector_size(32)));
typedef uint32_t counts_8 __attribute__((vector_size(32)));
typedef words_8 loose_words __attribute__((aligned(4), may_alias));
typedef int32_t loose_word __attribute__((aligned(2), may_alias));
#define wide_int8_t(p) __builtin_convertvector(*(const loose_bytes *)(p), shorts_16)
#define wide_int16_t(p) (*(const loose_shorts *)(p))
