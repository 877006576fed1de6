/* Batcher's odd-even merge sort of LANES lists of n items, side by side: each step compares rows of
   items with later rows. Source: Knuth, "The Art of Computer Programming", 5.2.2, algorithm M. */
static void NAME(ITEM *x, int64_t n)
{
    for (int64_t p = 1, whole = 1; p < n; p *= 2, whole++)
        for (int64_t k = p; k >= 1; k /= 2)
            for (int64_t i = k % p; i + k < n; i += 2 * k) {
                if (i >> whole != (i + k) >> whole) continue;
                ITEM *restrict a = x + i * LANES, *restrict b = a + k * LANES;
                const int64_t rows = n - i - k < k ? n - i - k : k;
                for (int64_t j = 0; j < rows * LANES; j++) {
                    const ITEM s = a[j], t = b[j];
                    a[j] = s < t ? s : t;
                    b[j] = s < t ? t : s;
                }
            }
}
