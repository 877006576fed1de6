/* Joins the values of all lanes of a warp, or of each LANES of them; every lane gets the result. */
template <class T, T join(T, T), int LANES = 32> static inline T over_warp(T x)
{
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2)
        x = join(x, (T)__shfl_xor_sync(0xffffffff, x, apart));
    return x;
}

/* Joins the values of all threads of a block of (SIZE, 1). */
template <class T, T join(T, T), int SIZE> static inline T over_block(T x)
{
    __shared__ T found[SIZE / 32];
    x = over_warp<T, join>(x);
    __syncthreads();  /* no thread still reads the values of an earlier call */
    if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = x;
    __syncthreads();
    x = found[0];
    for (int k = 1; k < SIZE / 32; k++) x = join(x, found[k]);
    return x;
}

/* Joins the values of the threads of a block of (32, SIZE) that have the same x. */
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

/* Neighbouring elements that are loaded and stored at once. */
template <class T, int N> struct alignas(sizeof(T) * N) Pack { T of[N]; };
