"""The beginning of every CUDA file: types, halves, what C has and CUDA has not, joined threads.

No header of the CUDA toolkit is needed: NVRTC alone compiles it.
"""

from __future__ import annotations

from functools import cache

from ...engine.codegen.c_helpers import FURTHER, helpers
from ...engine.codegen.kernel import BFLOAT16

TYPES = """\
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT64_MIN (-9223372036854775807LL - 1)
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)

static inline uint16_t half_of_float(float x)
{
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

static inline float float_of_half(uint16_t bits)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
"""
"""What a C compiler has in its headers."""

HALF = """\
struct half {  /* bits in memory; to compute with it, it becomes a float */
    uint16_t bits;
    half() = default;
    half(float x) : bits(half_of_float(x)) {}
    operator float() const { return float_of_half(bits); }
};
"""

JOINS = """\
/* What all lanes of a warp hold, joined: every lane gets the result. */
template <class T, T join(T, T)> static inline T over_warp(T x)
{
    for (int apart = 16; apart > 0; apart /= 2)
        x = join(x, (T)__shfl_xor_sync(0xffffffff, x, apart));
    return x;
}

/* The same for all threads of a block of (SIZE, 1). */
template <class T, T join(T, T), int SIZE> static inline T over_block(T x)
{
    __shared__ T found[SIZE / 32];
    x = over_warp<T, join>(x);
    __syncthreads();  /* nobody reads what was found before */
    if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = x;
    __syncthreads();
    x = found[0];
    for (int k = 1; k < SIZE / 32; k++) x = join(x, found[k]);
    return x;
}

/* The same for the threads of a block of (32, SIZE) that have the same x. */
template <class T, T join(T, T), int SIZE> static inline T over_column(T x)
{
    __shared__ T found[SIZE][32];
    __syncthreads();
    found[threadIdx.y][threadIdx.x] = x;
    for (int apart = SIZE / 2; apart > 0; apart /= 2) {
        __syncthreads();
        if (threadIdx.y < apart) {
            x = join(x, found[threadIdx.y + apart][threadIdx.x]);
            found[threadIdx.y][threadIdx.x] = x;
        }
    }
    __syncthreads();
    return found[0][threadIdx.x];
}
"""


@cache
def portable() -> str:
    """What stands before the kernels, also where a CPU plays the GPU."""
    bfloat16 = BFLOAT16.replace("(bfloat16){", "bfloat16{")
    further = [complete(text) for text, complete in FURTHER]
    return "\n".join([bfloat16, HALF, helpers(), *further, JOINS])


@cache
def prologue() -> str:
    """What stands before the kernels of a file."""
    return f"{TYPES}\n{portable()}"
