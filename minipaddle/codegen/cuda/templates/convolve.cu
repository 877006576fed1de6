/* Products x * y of the factors of convolutions. A block has a tile of the result; each of its
   warps has 32 rows and 4 * WIDE columns of it, sums in registers. Panels of both factors pass through
   shared memory: while one is multiplied, the next is on its way from memory to registers. A row of
   a panel has a word of each line: a float, a double, or two halves, neighbours in depth. */
enum { WORDS = 16, GAP = 8 };  /* rows of a panel; words that a row has more than lines */

static inline float widen(float x) { return x; }
static inline double widen(double x) { return x; }
static inline float widen(half x) { return widen_half(x); }
static inline void store(float &to, float x) { to = x; }
static inline void store(double &to, double x) { to = x; }
static inline void store(half &to, float x) { to = narrow_half(x); }
static inline void store(bfloat16 &to, float x) { to = narrow(x); }

/* Where a line is in a row of a panel: threads that store neighbouring words of some lines, and
   those that load words of neighbouring lines, use all banks of shared memory. */
static inline int spot(int word, int line) { return line ^ word / 4 % 4 * 8; }

/* A thread's share of the panels of a matrix whose neighbours are along the depth: P elements of
   each of ITEMS lines, in packs of LANES. A word has PER elements. */
template <class M, class E, int LINES, int THREADS, int LANES, int PER> struct PanelAlong {
    typedef typename M::Index Index;
    enum { P = LANES > PER ? LANES : PER, PARTS = WORDS * PER / P, DOWN = THREADS / PARTS };
    enum { ITEMS = LINES / DOWN };
    typedef Pack<E, PER> Word;
    typedef decltype(((const M *)0)->line(0)) Line;
    const int first = threadIdx.x / PARTS, part = threadIdx.x % PARTS * P;
    Line line[ITEMS];
    bool inside[ITEMS];
    Pack<E, P> held[ITEMS];

    PanelAlong(const M &m, Index begin, Index lines)
    {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const Index number = begin + first + i * DOWN;
            inside[i] = number < lines, line[i] = m.line(inside[i] ? number : 0);
        }
    }
    void load(const M &m, const E *from, Index k, Index depth)
    {
#pragma unroll
        for (int e = 0; e < P; e += LANES) {
            const bool within = k + part + e < depth;
            const auto here = m.depth(k + part + e);
#pragma unroll
            for (int i = 0; i < ITEMS; i++) {
                const Index at = within && inside[i] ? m.at(line[i], here) : -1;
                Pack<E, LANES> pack{};
                if (at >= 0) pack = *(const Pack<E, LANES> *)(from + at);
#pragma unroll
                for (int j = 0; j < LANES; j++) held[i].of[e + j] = pack.of[j];
            }
        }
    }
    void put(Word (*panel)[LINES + GAP])
    {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
#pragma unroll
            for (int e = 0; e < P / PER; e++) {
                Word all;
#pragma unroll
                for (int j = 0; j < PER; j++) all.of[j] = held[i].of[e * PER + j];
                panel[part / PER + e][spot(part / PER, first + i * DOWN)] = all;
            }
    }
};

/* The same for a matrix whose neighbours are lines: ITEMS words of each of LANES lines. */
template <class M, class E, int LINES, int THREADS, int LANES, int PER> struct PanelAcross {
    typedef typename M::Index Index;
    enum { PARTS = LINES / LANES, DOWN = THREADS / PARTS, ITEMS = WORDS / DOWN };
    typedef Pack<E, PER> Word;
    const int word = threadIdx.x / PARTS, part = threadIdx.x % PARTS * LANES;
    const bool inside;
    const decltype(((const M *)0)->line(0)) line;
    Pack<E, LANES> held[ITEMS][PER];

    PanelAcross(const M &m, Index begin, Index lines)
        : inside(begin + part < lines), line(m.line(inside ? begin + part : 0)) {}
    void load(const M &m, const E *from, Index k, Index depth)
    {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
#pragma unroll
            for (int e = 0; e < PER; e++) {
                const Index here = k + (word + i * DOWN) * PER + e;
                const Index at = inside && here < depth ? m.at(line, m.depth(here)) : -1;
                held[i][e] = {};
                if (at >= 0) held[i][e] = *(const Pack<E, LANES> *)(from + at);
            }
    }
    void put(Word (*panel)[LINES + GAP])
    {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            Pack<Word, LANES> all;
#pragma unroll
            for (int j = 0; j < LANES; j++)
#pragma unroll
                for (int e = 0; e < PER; e++) all.of[j].of[e] = held[i][e].of[j];
            const int to = word + i * DOWN;
            *(Pack<Word, LANES> *)&panel[to][spot(to, part)] = all;
        }
    }
};

template <bool ALONG> struct PanelOf {
    template <class M, class E, int LINES, int THREADS, int LANES, int PER>
    using Type = PanelAlong<M, E, LINES, THREADS, LANES, PER>;
};
template <> struct PanelOf<false> {
    template <class M, class E, int LINES, int THREADS, int LANES, int PER>
    using Type = PanelAcross<M, E, LINES, THREADS, LANES, PER>;
};

/* How a warp multiplies two panels. The sum [i][j] of lane 4g + t is that of row(g, i) and
   column(t, j) of the warp; RUN of its columns are neighbours. */
template <class E, int PER> struct CudaCores {
    enum { RUN = 4 };
    static int row(int g, int i) { return g * 4 + i; }
    static int column(int t, int j) { return j / 4 * 16 + t * 4 + j % 4; }

    template <class T, int J, class Word, int R, int C> static void
    multiply(T (&sums)[4][J], const Word (*x)[R], const Word (*y)[C], int above, int left)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll 4
        for (int k = 0; k < WORDS; k++) {
            const Pack<Word, 4> a = *(const Pack<Word, 4> *)&x[k][spot(k, above + g * 4)];
#pragma unroll
            for (int j = 0; j < J; j += 4) {
                const int c = left + column(t, j);
                const Pack<Word, 4> b = *(const Pack<Word, 4> *)&y[k][spot(k, c)];
#pragma unroll
                for (int i = 0; i < 4 * 4 * PER; i++) {
                    const int e = i / 16, r = i / 4 % 4, c = i % 4;
                    sums[r][j + c] += widen(a.of[r].of[e]) * widen(b.of[c].of[e]);
                }
            }
        }
    }
};

#ifdef TENSOR_CORES
static inline uint32_t bits(const Pack<half, 2> &x) { return *(const uint32_t *)&x; }
static inline uint32_t bits(const Pack<bfloat16, 2> &x) { return *(const uint32_t *)&x; }
static inline uint32_t bits(const Pack<float, 1> &x) { return tf32_of_float(x.of[0]); }

template <void multiply_words(float *, const uint32_t *, const uint32_t *)> struct TensorCores {
    enum { RUN = 2 };
    static int row(int g, int i) { return g + i * 8; }
    static int column(int t, int j) { return t * 2 + j % 2 + j / 2 * 8; }

    template <int J, class Word, int R, int C> static void
    multiply(float (&sums)[4][J], const Word (*x)[R], const Word (*y)[C], int above, int left)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int k = 0; k < WORDS; k += 8) {
            const auto word = [&](auto panel, int at, int line) {
                return bits(panel[k + at][spot(k + at, line)]);
            };
            uint32_t a[2][4];
#pragma unroll
            for (int i = 0; i < 8; i++)
                a[i / 4][i % 4] = word(x, t + i % 4 / 2 * 4, above + g + i / 4 * 16 + i % 2 * 8);
#pragma unroll
            for (int j = 0; j < J; j += 2) {
                const int c = left + j * 4 + g;
                const uint32_t b[2] = {word(y, t, c), word(y, t + 4, c)};
#pragma unroll
                for (int i = 0; i < 4; i += 2) {
                    float s[4] = {sums[i][j], sums[i][j + 1], sums[i + 1][j], sums[i + 1][j + 1]};
                    multiply_words(s, a[i / 2], b);
                    sums[i][j] = s[0], sums[i][j + 1] = s[1];
                    sums[i + 1][j] = s[2], sums[i + 1][j + 1] = s[3];
                }
            }
        }
    }
};
#endif

template <class E> struct Cores { typedef CudaCores<E, sizeof(E) == 2 ? 2 : 1> Type; };
#ifdef TENSOR_CORES
template <> struct Cores<half> { typedef TensorCores<multiply_half> Type; };
template <> struct Cores<bfloat16> { typedef TensorCores<multiply_bfloat16> Type; };
#ifdef TF32
template <> struct Cores<float> { typedef TensorCores<multiply_tf32> Type; };
#endif
#endif

/* A convolution by tiles: block x has one of a phase and a group, block y a part of its sums. */
template <class P, class S, class E, class R> static inline void
convolve(const E *x, const E *y, R *out)
{
    typedef typename S::Index Index;
    typedef typename Cores<E>::Type Core;
    typedef decltype(widen(E())) T;
    enum { THREADS = S::DOWN * S::ACROSS * 32, J = S::WIDE, PER = sizeof(E) == 2 ? 2 : 1 };
    enum { LINES = S::DOWN * 32, COLUMNS = S::ACROSS * S::WIDE * 4, DEPTH = WORDS * PER };
    enum { TILES = (S::COLUMNS + COLUMNS - 1) / COLUMNS };
    const int begin = blockIdx.x % TILES * COLUMNS, of = blockIdx.x / TILES;
    const P product(of / S::GROUPS % S::PHASES, of % S::GROUPS);
    const Index top = (Index)(of / (S::GROUPS * S::PHASES)) * LINES;
    const Index rows = product.rows(), depth = product.depth();
    if (top >= rows) return;
    const Index part = ((depth + S::SPLITS - 1) / S::SPLITS + DEPTH - 1) / DEPTH * DEPTH;
    const Index first = blockIdx.y * part, last = first + part < depth ? first + part : depth;

    typedef Pack<E, PER> Word;
    alignas(32) __shared__ Word left[2][WORDS][LINES + GAP], right[2][WORDS][COLUMNS + GAP];
    typedef decltype(product.left) Left;
    typedef decltype(product.right) Right;
    typename PanelOf<Left::ALONG>::template Type<Left, E, LINES, THREADS, S::LEFT, PER>
        a(product.left, top, rows);
    typename PanelOf<Right::ALONG>::template Type<Right, E, COLUMNS, THREADS, S::RIGHT, PER>
        b(product.right, begin, S::COLUMNS);
    const int warp = threadIdx.x / 32, above = warp / S::ACROSS * 32;
    const int beside = warp % S::ACROSS * (J * 4);
    T sums[4][J] = {};
    int turn = 0;
    for (Index k = first; k < last + DEPTH; k += DEPTH) {
        if (k < last) a.load(product.left, x, k, last), b.load(product.right, y, k, last);
        if (k > first) Core::multiply(sums, left[turn], right[turn], above, beside), turn ^= 1;
        if (k < last) a.put(left[turn]), b.put(right[turn]);
        __syncthreads();
    }

    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    enum { MOST = Core::RUN * sizeof(R) > 16 ? 2 : Core::RUN, RUN = S::COLUMNS % MOST ? 1 : MOST };
    out += blockIdx.y * (Index)S::SIZE;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const Index row = top + above + Core::row(g, i);
        if (row >= rows) continue;
        R *to = out + product.place(row);
#pragma unroll
        for (int j = 0; j < J; j += RUN) {
            const int column = begin + beside + Core::column(t, j);
            Pack<R, RUN> pack;
#pragma unroll
            for (int e = 0; e < RUN; e++) store(pack.of[e], sums[i][j + e]);
            if (column < S::COLUMNS) *(Pack<R, RUN> *)(to + column) = pack;
        }
    }
}

/* A convolution with few columns in a group: a thread for each element, neighbours are columns. */
template <class P, class S, class E, class R> static inline void
convolve_columns(const E *x, const E *y, R *out)
{
    typedef typename S::Index Index;
    const int phase = blockIdx.x % S::PHASES;
    const Index i = (Index)(blockIdx.x / S::PHASES) * S::THREADS + threadIdx.x;
    const int column = i % S::COLUMNS;
    const P product(phase, i / S::COLUMNS % S::GROUPS);
    const Index row = i / (S::COLUMNS * S::GROUPS), depth = product.depth();
    if (row >= product.rows()) return;
    const Index part = (depth + S::SPLITS - 1) / S::SPLITS;
    const Index first = blockIdx.y * part, last = first + part < depth ? first + part : depth;
    const auto a = product.left.line(row);
    const auto b = product.right.line(column);
    decltype(widen(E())) sum = 0;
    for (Index k = first; k < last; k++) {
        const Index at = product.left.at(a, product.left.depth(k));
        if (at >= 0) sum += widen(x[at]) * widen(y[product.right.at(b, product.right.depth(k))]);
    }
    store(out[blockIdx.y * (Index)S::SIZE + product.place(row) + column], sum);
}
