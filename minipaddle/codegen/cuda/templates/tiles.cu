/* Tiles of HEIGHT x 64 scores. A block has 16 threads across: each has TALL rows of a tile, and of
   every 64 columns 4 neighbours. In shared memory operands lie turned, some terms at a time. */
enum { TILE = 64, SLICE = 16 };

static inline float widened(float x) { return x; }
static inline float widened(half x) { return x; }
static inline float widened(bfloat16 x) { return widen(x); }
static inline void store(float *to, float x) { *to = x; }
static inline void store(half *to, float x) { *to = half(x); }
static inline void store(bfloat16 *to, float x) { *to = narrow(x); }

/* to[k][r] = x[r * step + k * next] for SLICE terms k of WIDTH rows r; 0 where there are none. */
template <int WIDTH, int THREADS, class E>
static inline void load_slice(float *to, const E *x, int64_t step, int64_t next, int rows, int terms)
{
    for (int at = threadIdx.y * 16 + threadIdx.x; at < WIDTH * SLICE; at += THREADS) {
        const int r = next == 1 ? at / SLICE : at % WIDTH;
        const int k = next == 1 ? at % SLICE : at / WIDTH;
        to[k * (WIDTH + 4) + r] = r < rows && k < terms ? widened(x[r * step + k * next]) : 0;
    }
}

/* sums[a][b] += x[k][a] y[k][b] for SLICE terms k, and this thread's rows a and columns b. */
template <int HEIGHT, int TALL, int WIDE>
static inline void add_slice(float (&sums)[TALL][WIDE], const float *x, const float *y)
{
    x += threadIdx.y * TALL, y += threadIdx.x * 4;
#pragma unroll 4
    for (int k = 0; k < SLICE; k++) {
        Pack<float, 4> left[TALL / 4], right[WIDE / 4];
#pragma unroll
        for (int a = 0; a < TALL / 4; a++)
            left[a] = *(const Pack<float, 4> *)(x + k * (HEIGHT + 4) + a * 4);
#pragma unroll
        for (int b = 0; b < WIDE / 4; b++)
            right[b] = *(const Pack<float, 4> *)(y + k * (16 * WIDE + 4) + b * 64);
#pragma unroll
        for (int a = 0; a < TALL; a++)
#pragma unroll
            for (int b = 0; b < WIDE; b++)
                sums[a][b] += left[a / 4].of[a % 4] * right[b / 4].of[b % 4];
    }
}

/* A tile of x yᵀ, of operands in memory. */
template <int HEIGHT, int TALL, class X, class Y>
static inline void multiply_tile(
    float (&sums)[TALL][4], float *room, const X *x, int64_t x_step, int64_t x_next, int x_rows,
    const Y *y, int64_t y_step, int64_t y_next, int y_rows, int terms)
{
    constexpr int THREADS = 16 * HEIGHT / TALL;
    float *right = room + SLICE * (HEIGHT + 4);
    for (int k = 0; k < terms; k += SLICE) {
        __syncthreads();
        load_slice<HEIGHT, THREADS>(room, x + k * x_next, x_step, x_next, x_rows, terms - k);
        load_slice<TILE, THREADS>(right, y + k * y_next, y_step, y_next, y_rows, terms - k);
        __syncthreads();
        add_slice<HEIGHT>(sums, room, right);
    }
}

/* sums += strip y: the strip is in shared memory, y has rows of `columns` neighbours. */
template <int HEIGHT, int TALL, int WIDE, class E>
static inline void multiply_strip(
    float (&sums)[TALL][WIDE], float *room, const float *strip, const E *y, int64_t step,
    int columns, int terms)
{
    for (int k = 0; k < TILE && k < terms; k += SLICE) {
        __syncthreads();
        load_slice<16 * WIDE, 16 * HEIGHT / TALL>(room, y + k * step, 1, step, columns, terms - k);
        __syncthreads();
        add_slice<HEIGHT>(sums, strip + k * (HEIGHT + 4), room);
    }
}

/* Store this thread's part of the rows of a result. */
template <int TALL, int WIDE, class E>
static inline void store_rows(
    E *out, int64_t step, const float (&sums)[TALL][WIDE], int rows, int columns)
{
#pragma unroll
    for (int a = 0; a < TALL; a++)
#pragma unroll
        for (int b = 0; b < WIDE; b++) {
            const int row = threadIdx.y * TALL + a, column = b / 4 * 64 + threadIdx.x * 4 + b % 4;
            if (row < rows && column < columns) store(out + row * step + column, sums[a][b]);
        }
}
