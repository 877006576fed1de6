/* Products by tensor cores: a warp adds x * y of 16 x 8 and 8 x 8 words to the sums, 16 x 8 floats.
   A word is a float, or two halves, which are neighbours along the sum. Lane 4g + t has

   words   x[g][t], x[g + 8][t], x[g][t + 4], x[g + 8][t + 4]        y[t][g], y[t + 4][g]
   sums    s[g][2t], [g][2t + 1], [g + 8][2t], [g + 8][2t + 1] */
#if __CUDA_ARCH__ >= 800
#define TENSOR_CORES 1
#define MULTIPLY(NAME, KIND) \
static inline void NAME(float *s, const uint32_t *x, const uint32_t *y) \
{ \
    asm volatile("mma.sync.aligned." KIND " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) \
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1])); \
}

MULTIPLY(multiply_half, "m16n8k16.row.col.f32.f16.f16.f32")
MULTIPLY(multiply_bfloat16, "m16n8k16.row.col.f32.bf16.bf16.f32")
MULTIPLY(multiply_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")

static inline uint32_t tf32_of_float(float x)
{
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}
#endif
