#if defined __BYTE_ORDER__ && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the weights are little-endian, this processor is not"
#endif
#define bool _Bool
#define true 1
#define false 0
#define STEADY __asm__ volatile("" ::: "memory")  /* the compiler makes no call of itself of a loop */

/* Compilers also call memset and memcpy where no call is written. */
__attribute__((used)) static void *memset(void *to, int byte, size_t n)
{
    typedef unsigned char bytes __attribute__((vector_size(16), aligned(1), may_alias));
    const bytes all = (bytes){0} + (unsigned char)byte;
    char *p = to;
    for (; n >= sizeof all; n -= sizeof all, p += sizeof all) { *(bytes *)p = all; STEADY; }
    for (; n > 0; n--) { *p++ = (char)byte; STEADY; }
    return to;
}

#if defined FREESTANDING || defined __wasm__
__attribute__((used)) static void *memcpy(void *to, const void *from, size_t n)
{
    typedef unsigned char bytes __attribute__((vector_size(16), aligned(1), may_alias));
    char *p = to;
    const char *q = from;
    for (; n >= sizeof(bytes); n -= sizeof(bytes), p += sizeof(bytes), q += sizeof(bytes)) {
        *(bytes *)p = *(const bytes *)q;
        STEADY;
    }
    for (; n > 0; n--) { *p++ = *q++; STEADY; }
    return to;
}
#else
void *memcpy(void *, const void *, size_t);
#endif
