/* The factors of a convolution, whose images have their channels last. `S` has its sizes.

   A matrix is known by `at(line, depth)`: where an element is in memory, or less than 0 if it is
   zero. Sums run along the depth; a line is a row of the left factor or a column of the right one.
   What is the same for a line, or for a depth, is computed once: `line(i)` and `depth(k)`. If it is
   ALONG, neighbours along the depth are neighbours in memory; otherwise neighbouring lines are. */

/* Along an axis of an image, window p has its tap t at p * stride + first + t * apart. The weight
   of the tap is number tap + t * step. */
struct WindowAxis {
    int size, windows, stride, first, taps, apart, tap, step;

    bool contains(int at) const { return (unsigned)at < (unsigned)size; }
};

template <class S> struct Windows {  /* [windows, taps and channels], of group g */
    typedef typename S::Index Index;
    enum { ALONG = 1 };
    struct Part { Index at; int d, h, w; };  /* of a place in memory and of its coordinates */
    WindowAxis d, h, w;
    int g;

    Index windows() const { return (Index)S::IMAGES * d.windows * h.windows * w.windows; }
    int taps() const { return d.taps * h.taps * w.taps * S::CHANNELS; }
    Part line(Index p) const
    {
        const Index q = p / w.windows, r = q / h.windows;
        return part(r / d.windows, r % d.windows * d.stride + d.first,
                    q % h.windows * h.stride + h.first, p % w.windows * w.stride + w.first,
                    g * S::CHANNELS);
    }
    Part depth(int k) const
    {
        const int t = k / S::CHANNELS, u = t / w.taps;
        return part(0, u / h.taps * d.apart, u % h.taps * h.apart, t % w.taps * w.apart,
                    k % S::CHANNELS);
    }
    Part part(Index image, int z, int y, int x, int channel) const
    {
        const Index pixel = ((image * d.size + z) * h.size + y) * w.size + x;
        return {pixel * (S::CHANNELS * S::GROUPS) + channel, z, y, x};
    }
    Index at(const Part &p, const Part &t) const
    {
        const bool inside = d.contains(p.d + t.d) && h.contains(p.h + t.h) && w.contains(p.w + t.w);
        return inside ? p.at + t.at : -1;
    }
};

template <class S> static inline Windows<S> windows_of(int g)
{
    return {{S::ID, S::OD, S::SD, -S::PD, S::KD, S::GD, 0, 1},
            {S::IH, S::OH, S::SH, -S::PH, S::KH, S::GH, 0, 1},
            {S::IW, S::OW, S::SW, -S::PW, S::KW, S::GW, 0, 1}, g};
}

template <class S> struct TurnedWindows {  /* [taps and channels, windows] */
    typedef typename S::Index Index;
    enum { ALONG = 0 };
    Windows<S> of;

    typedef typename Windows<S>::Part Part;
    Part line(int i) const { return of.depth(i); }
    Part depth(Index k) const { return of.line(k); }
    Index at(const Part &t, const Part &p) const { return of.at(p, t); }
};

/* [depth, outputs]: the weights, or the gradient of the outputs. */
template <class S> struct Outputs {
    typedef typename S::Index Index;
    enum { ALONG = 0 };
    int g;

    Index line(int i) const { return g * (S::OUTS / S::GROUPS) + i; }
    Index depth(Index k) const { return k * S::OUTS; }
    Index at(Index line, Index depth) const { return line + depth; }
};

/* [taps and outputs, channels of the image]: the weights for the windows of a gradient. */
template <class S> struct TurnedWeights {
    typedef typename S::Index Index;
    enum { ALONG = 1 };
    Windows<S> of;

    Index line(Index c) const { return c * S::OUTS + of.g * S::CHANNELS; }
    Index depth(int k) const
    {
        const int t = k / S::CHANNELS, u = t / of.w.taps;
        const int d = of.d.tap + u / of.h.taps * of.d.step;
        const int h = of.h.tap + u % of.h.taps * of.h.step;
        const Index tap = (d * S::KH + h) * S::KW + of.w.tap + t % of.w.taps * of.w.step;
        return tap * (S::COLUMNS * S::OUTS) + k % S::CHANNELS;
    }
    Index at(Index line, Index depth) const { return line + depth; }
};

/* The three convolutions: the product left * right of a group, and the places of its rows. For the
   gradient of an image with strides, the pixels are in phases: in each, all have the same taps. */

template <class S> struct Forward {
    typedef typename S::Index Index;
    Windows<S> left;
    Outputs<S> right;

    Forward(int, int g) : left(windows_of<S>(g)), right{g} {}
    Index rows() const { return left.windows(); }
    Index depth() const { return left.taps(); }
    Index place(Index row) const { return row * S::OUTS + right.line(0); }
};

template <class S> struct WeightGrad {
    typedef typename S::Index Index;
    TurnedWindows<S> left;
    Outputs<S> right;

    WeightGrad(int, int g) : left{windows_of<S>(g)}, right{g} {}
    Index rows() const { return left.of.taps(); }
    Index depth() const { return left.of.windows(); }
    Index place(Index row) const { return row * S::OUTS + right.line(0); }
};

template <class S> struct InputGrad {
    typedef typename S::Index Index;
    int d, h, w;  /* the first pixel of the phase */
    Windows<S> left;
    TurnedWeights<S> right;

    InputGrad(int phase, int g)
        : d(phase / (S::SH * S::SW)), h(phase / S::SW % S::SH), w(phase % S::SW),
          left(windows_of<S>(g)), right{turn()} {}
    Index rows() const { return left.windows(); }
    Index depth() const { return left.taps(); }
    Index place(Index row) const
    {
        const Index q = row / left.w.windows, r = q / left.h.windows;
        const Index z = r % left.d.windows * S::SD + d, n = r / left.d.windows;
        const Index y = q % left.h.windows * S::SH + h, x = row % left.w.windows * S::SW + w;
        return (((n * S::ID + z) * S::IH + y) * S::IW + x) * (S::COLUMNS * S::GROUPS)
            + left.g * S::COLUMNS;
    }

    Windows<S> turn()
    {
        left.d = turned(left.d, d), left.h = turned(left.h, h), left.w = turned(left.w, w);
        return left;
    }

    /* The windows in which the pixels first, first + stride, ... of an image are, tap by tap. */
    static WindowAxis turned(const WindowAxis &a, int first)
    {
        int tap = 0, step = 1;
        while (tap < a.taps && (first - a.first - tap * a.apart) % a.stride) tap++;
        while (step * a.apart % a.stride) step++;
        return {a.windows, (a.size - first + a.stride - 1) / a.stride, 1,
                (first - a.first - tap * a.apart) / a.stride, (a.taps - tap + step - 1) / step,
                -step * a.apart / a.stride, tap, step};
    }
};
