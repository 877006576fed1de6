/* Tiles of scores, HEIGHT x 64, and strips, which are such tiles of weights in shared memory. Of a
   tile each thread of a block has the elements (row(a), column(b)). `Room` holds slices of operands:
   some terms at a time. LANES neighbours of an operand are loaded at once. */
enum { TILE = 64, WIDEST = 128 };

static inline float widened(float x) { return x; }
static inline float widened(half x) { return x; }
static inline float widened(bfloat16 x) { return widen(x); }
static inline void store(float *to, float x) { *to = x; }
static inline void store(half *to, float x) { *to = half(x); }
static inline void store(bfloat16 *to, float x) { *to = narrow(x); }

/* Of float32. Threads are (16, HEIGHT / TALL), and operands lie turned in shared memory. */
template <int HEIGHT, int TALL> struct FloatTiles {
    enum { SLICE = 16, PITCH = HEIGHT + 4, THREADS = 16 * HEIGHT / TALL };
    struct Room {
        alignas(16) float left[SLICE * PITCH];
        alignas(16) float right[SLICE * (WIDEST + 4)];
    };
    struct Strip { alignas(16) float of[TILE * PITCH]; };

    static inline int row(int a) { return threadIdx.y * TALL + a; }
    static inline int column(int b) { return b / 4 * 64 + threadIdx.x * 4 + b % 4; }

    static inline void put(Strip &strip, int a, int b, float x)
    {
        strip.of[column(b) * PITCH + row(a)] = x;
    }

    /* to[k][r] = x[r * step + k * next] for terms k of WIDTH rows r; 0 where there are none. */
    template <int WIDTH, int LANES>
    static inline void load(
        float *to, const float *x, int64_t step, int64_t next, int rows, int terms)
    {
        const int first = (threadIdx.y * 16 + threadIdx.x) * LANES;
        for (int at = first; at < WIDTH * SLICE; at += THREADS * LANES) {
            const int r = next == 1 ? at / SLICE : at % WIDTH;
            const int k = next == 1 ? at % SLICE : at / WIDTH;
            Pack<float, LANES> pack = {};
            if (r < rows && k < terms)
                pack = *(const Pack<float, LANES> *)(x + r * step + k * next);
            float *place = to + k * (WIDTH + 4) + r;
            if (next != 1) *(Pack<float, LANES> *)place = pack;
            else for (int lane = 0; lane < LANES; lane++) place[lane * (WIDTH + 4)] = pack.of[lane];
        }
    }

    /* sums[a][b] += x[k][a] y[k][b] for the terms k of a slice. */
    template <int WIDE>
    static inline void add(float (&sums)[TALL][WIDE], const float *x, const float *y)
    {
        x += threadIdx.y * TALL, y += threadIdx.x * 4;
#pragma unroll 4
        for (int k = 0; k < SLICE; k++) {
            Pack<float, 4> left[TALL / 4], right[WIDE / 4];
#pragma unroll
            for (int a = 0; a < TALL / 4; a++)
                left[a] = *(const Pack<float, 4> *)(x + k * PITCH + a * 4);
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
    template <int X_LANES, int Y_LANES>
    static inline void multiply(
        float (&sums)[TALL][4], Room &room, const float *x, int64_t x_step, int64_t x_next,
        int x_rows, const float *y, int64_t y_step, int64_t y_next, int y_rows, int terms)
    {
        for (int k = 0; k < terms; k += SLICE) {
            __syncthreads();
            load<HEIGHT, X_LANES>(room.left, x + k * x_next, x_step, x_next, x_rows, terms - k);
            load<TILE, Y_LANES>(room.right, y + k * y_next, y_step, y_next, y_rows, terms - k);
            __syncthreads();
            add(sums, room.left, room.right);
        }
    }

    /* sums += strip y: y has rows of `columns` neighbours. */
    template <int LANES, int WIDE>
    static inline void multiply_strip(
        float (&sums)[TALL][WIDE], Room &room, const Strip &strip, const float *y, int64_t step,
        int columns, int terms)
    {
        for (int k = 0; k < TILE && k < terms; k += SLICE) {
            __syncthreads();
            load<16 * WIDE, LANES>(room.right, y + k * step, 1, step, columns, terms - k);
            __syncthreads();
            add(sums, strip.of + k * PITCH, room.right);
        }
    }
};

/* sums += x y by a warp: see tensor_cores.cu. Chips without them take the same words. */
#ifdef TENSOR_CORES
static inline void add_words(float *sums, const uint32_t *x, const uint32_t *y, half)
{
    multiply_half(sums, x, y);
}

static inline void add_words(float *sums, const uint32_t *x, const uint32_t *y, bfloat16)
{
    multiply_bfloat16(sums, x, y);
}
#else
template <class E>
static inline void add_words(float *sums, const uint32_t *x, const uint32_t *y, E)
{
    for (int k = 0; k < 8; k++) {
        const int down = threadIdx.y % 8 * 4 + k % 4, across = threadIdx.x * 8 + k % 4;
        const uint32_t left[] = {__shfl_sync(0xffffffff, x[k / 4 * 2], down),
                                 __shfl_sync(0xffffffff, x[k / 4 * 2 + 1], down)};
        const uint32_t right[] = {__shfl_sync(0xffffffff, y[k / 4], across),
                                  __shfl_sync(0xffffffff, y[k / 4], across + 4)};
        for (int i = 0; i < 4; i++)
            for (int part = 0; part < 2; part++)
                sums[i] += widened(((const E *)&left[i / 2])[part])
                    * widened(((const E *)&right[i % 2])[part]);
    }
}
#endif

/* Of halves, by tensor cores: a warp has 16 rows. Threads are (4, HEIGHT / 2). */
template <class E, int HEIGHT> struct HalfTiles {
    enum { SLICE = 32, PITCH = SLICE + 8, LONG = TILE + 8, THREADS = 2 * HEIGHT };
    struct Room {
        alignas(16) E left[HEIGHT * PITCH];
        alignas(16) E right[WIDEST * PITCH];
    };
    struct Strip { alignas(16) E of[HEIGHT * LONG]; };

    static inline int row(int a) { return threadIdx.y / 8 * 16 + threadIdx.y % 8 + a * 8; }
    static inline int column(int b) { return b / 2 * 8 + threadIdx.x * 2 + b % 2; }

    static inline void put(Strip &strip, int a, int b, float x)
    {
        store(strip.of + row(a) * LONG + column(b), x);
    }

    /* to[r][k] = x[r * step + k * next] for terms k of WIDTH rows r; 0 where there are none. */
    template <int WIDTH, int LANES>
    static inline void load(E *to, const E *x, int64_t step, int64_t next, int rows, int terms)
    {
        const int first = (threadIdx.y * 4 + threadIdx.x) * LANES;
        for (int at = first; at < WIDTH * SLICE; at += THREADS * LANES) {
            const int r = next == 1 ? at / SLICE : at % WIDTH;
            const int k = next == 1 ? at % SLICE : at / WIDTH;
            Pack<E, LANES> pack = {};
            if (r < rows && k < terms) pack = *(const Pack<E, LANES> *)(x + r * step + k * next);
            E *place = to + r * PITCH + k;
            if (next == 1) *(Pack<E, LANES> *)place = pack;
            else for (int lane = 0; lane < LANES; lane++) place[lane * PITCH] = pack.of[lane];
        }
    }

    static inline uint32_t word(const E *x) { return *(const uint32_t *)x; }

    /* sums[a][b] += x[a][k] y[b][k] for the terms k of a slice. */
    template <int WIDE>
    static inline void add(float (&sums)[2][WIDE], const E *x, int pitch, const E *y)
    {
        x += row(0) * pitch + threadIdx.x * 2, y += threadIdx.y % 8 * PITCH + threadIdx.x * 2;
#pragma unroll
        for (int k = 0; k < SLICE; k += 16) {
            const E *below = x + 8 * pitch;
            const uint32_t left[] = {
                word(x + k), word(below + k), word(x + k + 8), word(below + k + 8)};
#pragma unroll
            for (int b = 0; b < WIDE; b += 2) {
                const E *from = y + b * 4 * PITCH + k;
                const uint32_t right[] = {word(from), word(from + 8)};
                float part[] = {sums[0][b], sums[0][b + 1], sums[1][b], sums[1][b + 1]};
                add_words(part, left, right, E());
                sums[0][b] = part[0], sums[0][b + 1] = part[1];
                sums[1][b] = part[2], sums[1][b + 1] = part[3];
            }
        }
    }

    /* A tile of x yᵀ, of operands in memory. */
    template <int X_LANES, int Y_LANES>
    static inline void multiply(
        float (&sums)[2][16], Room &room, const E *x, int64_t x_step, int64_t x_next, int x_rows,
        const E *y, int64_t y_step, int64_t y_next, int y_rows, int terms)
    {
        for (int k = 0; k < terms; k += SLICE) {
            __syncthreads();
            load<HEIGHT, X_LANES>(room.left, x + k * x_next, x_step, x_next, x_rows, terms - k);
            load<TILE, Y_LANES>(room.right, y + k * y_next, y_step, y_next, y_rows, terms - k);
            __syncthreads();
            add(sums, room.left, PITCH, room.right);
        }
    }

    /* sums += strip y: y has rows of `columns` neighbours. */
    template <int LANES, int WIDE>
    static inline void multiply_strip(
        float (&sums)[2][WIDE], Room &room, const Strip &strip, const E *y, int64_t step,
        int columns, int terms)
    {
        for (int k = 0; k < TILE && k < terms; k += SLICE) {
            __syncthreads();
            load<4 * WIDE, LANES>(room.right, y + k * step, 1, step, columns, terms - k);
            __syncthreads();
            add(sums, strip.of + k, LONG, room.right);
        }
    }
};

/* Store this thread's part of the rows of a result. */
template <class Tiles, int TALL, int WIDE, class E>
static inline void store_rows(
    E *out, int64_t step, const float (&sums)[TALL][WIDE], int rows, int columns)
{
#pragma unroll
    for (int a = 0; a < TALL; a++)
#pragma unroll
        for (int b = 0; b < WIDE; b++) {
            const int row = Tiles::row(a), column = Tiles::column(b);
            if (row < rows && column < columns) store(out + row * step + column, sums[a][b]);
        }
}
