/* CUDA on a CPU, to check numbers without a GPU: blocks one after the other. The threads of a block
   are coroutines: each runs until it waits for the others, then the next does. In every other block
   the last thread goes first: what is right in one order only is a race, and shows. */
#include <csetjmp>
#include <math.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

#define __global__
#define __shared__ static
#define __launch_bounds__(n)

struct Three { unsigned x, y, z; };
static Three threadIdx, blockIdx, blockDim, gridDim;

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float of_bits(uint32_t bits)
{
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

#ifdef __F16C__
/* F16C by GCC's builtins: to parse immintrin.h takes four times as long as all the rest */
typedef float floats4 __attribute__((vector_size(16)));
typedef short shorts8 __attribute__((vector_size(16)));

static inline uint16_t half_of_float(float x)
{
    return __builtin_ia32_vcvtps2ph(floats4{x, 0, 0, 0}, 0)[0];
}

static inline float float_of_half(uint16_t bits)
{
    return __builtin_ia32_vcvtph2ps(shorts8{(short)bits})[0];
}
#else
static inline uint16_t half_of_float(float x)
{
    const uint32_t sign = bits_of(x) >> 16 & 0x8000, a = bits_of(x) & 0x7fffffff;
    if (a > 0x7f800000) return sign | 0x7e00 | (a >> 13 & 0x3ff); /* NaN */
    if (a >= 0x477ff000) return sign | 0x7c00; /* 65520 and more round to infinity */
    if (a < 0x38800000) return sign | (bits_of(of_bits(a) + 0.5f) - bits_of(0.5f)); /* subnormal */
    return sign | (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13; /* the nearest, or even */
}

static inline float float_of_half(uint16_t bits)
{
    const uint32_t sign = (bits & 0x8000u) << 16, a = bits & 0x7fff;
    if (a < 0x400) return of_bits(sign | bits_of(a * 0x1p-24f));
    return of_bits(sign | (a << 13) + (a < 0x7c00 ? 0x38000000 : 0x70000000));
}
#endif

enum { STACK = 1 << 16, MOST = 1024 };
struct Thread { jmp_buf at; ucontext_t first; bool begun, done; };
static Thread all[MOST];
static char *stacks;
static jmp_buf scheduler;
static int now, count;
static void (*body)();
static bool backwards;

static void __syncthreads()
{
    if (!_setjmp(all[now].at)) _longjmp(scheduler, 1);
}

static int __syncthreads_or(int x)
{
    static bool put[MOST];
    put[now] = x;
    __syncthreads();
    bool any = false;
    for (int k = 0; k < count; k++) any |= put[k];
    __syncthreads();
    return any;
}

/* Two waits: all lanes put, then all get. */
template <class T> static T __shfl_xor_sync(unsigned, T x, int apart)
{
    static T put[MOST];
    put[now] = x;
    __syncthreads();
    T got = put[now ^ apart];
    __syncthreads();
    return got;
}

#define TENSOR_CORES 1
static inline uint32_t tf32_of_float(float x) { return bits_of(x) + 0x1000 & 0xffffe000; }

/* The elements of a word are of 32 or 16 bits; see tensor_cores.cu. */
template <int PER, float element(uint32_t)>
static void multiply_words(float *s, const uint32_t *x, const uint32_t *y)
{
    static uint32_t put_x[MOST][4], put_y[MOST][2];
    const int first = now / 32 * 32, g = now % 32 / 4, t = now % 4;
    memcpy(put_x[now], x, sizeof put_x[now]), memcpy(put_y[now], y, sizeof put_y[now]);
    __syncthreads();
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 8; k++) {
            const uint32_t a = put_x[first + g * 4 + k % 4][k / 4 * 2 + i / 2];
            const uint32_t b = put_y[first + (t * 2 + i % 2) * 4 + k % 4][k / 4];
            for (int e = 0; e < PER; e++)
                s[i] += element(a >> 16 * e) * element(b >> 16 * e);
        }
    __syncthreads();
}

static float of_half(uint32_t bits) { return float_of_half(bits); }
static float of_bfloat16(uint32_t bits) { return of_bits(bits << 16); }
#define MULTIPLY(NAME, PER, ELEMENT) \
static void NAME(float *s, const uint32_t *x, const uint32_t *y) \
{ \
    multiply_words<PER, ELEMENT>(s, x, y); \
}

MULTIPLY(multiply_half, 2, of_half)
MULTIPLY(multiply_bfloat16, 2, of_bfloat16)
MULTIPLY(multiply_tf32, 1, of_bits)

template <class T> static T __shfl_sync(unsigned, T x, int lane)
{
    return __shfl_xor_sync(0, x, lane ^ now % 32);
}

static void begin()
{
    body();
    all[now].done = true;
    _longjmp(scheduler, 1);
}

/* One block: each thread in turn, up to its next wait. */
static void run_block()
{
    static volatile int left, turn;
    for (int k = 0; k < count; k++) all[k].begun = all[k].done = false;
    for (left = count; left > 0;) {
        for (turn = 0; turn < count; turn++) {
            now = backwards ? count - 1 - turn : turn;
            if (all[now].done) continue;
            threadIdx = {now % blockDim.x, now / blockDim.x, 0};
            if (!_setjmp(scheduler)) {
                if (all[now].begun) _longjmp(all[now].at, 1);
                all[now].begun = true;
                getcontext(&all[now].first);
                all[now].first.uc_stack.ss_sp = stacks + (size_t)now * STACK;
                all[now].first.uc_stack.ss_size = STACK;
                makecontext(&all[now].first, begin, 0);
                setcontext(&all[now].first);
            }
            if (all[now].done) left--;
        }
    }
}

static void run_grid(void (*kernel)(), bool waits, unsigned x, unsigned y, unsigned tx, unsigned ty)
{
    if (!stacks) stacks = (char *)malloc((size_t)MOST * STACK);
    body = kernel, count = tx * ty;
    gridDim = {x, y, 1}, blockDim = {tx, ty, 1};
    for (unsigned b = 0; b < y; b++)
        for (unsigned a = 0; a < x; a++) {
            blockIdx = {a, b, 0}, backwards = !backwards;
            if (waits) {
                run_block();
                continue;
            }
            for (unsigned turn = 0; turn < count; turn++) {
                now = backwards ? count - 1 - turn : turn;
                threadIdx = {now % tx, now / tx, 0};
                kernel();
            }
        }
}
