typedef T EIGHT __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));

/* z = x y: four rows by eight columns in registers, the others one by one */
static void MULTIPLY(const T *x, const T *y, T *restrict z, int64_t n)
{
    const int64_t rows = n / 4 * 4, columns = n / 8 * 8;
    for (int64_t i = 0; i < rows; i += 4)
        for (int64_t j = 0; j < columns; j += 8) {
            EIGHT sum[4] = {{0}};
            for (int64_t k = 0; k < n; k++) {
                const EIGHT row = *(const EIGHT *)(y + k * n + j);
                _Pragma("GCC unroll 4") for (int r = 0; r < 4; r++)
                    sum[r] += x[(i + r) * n + k] * row;
            }
            _Pragma("GCC unroll 4") for (int r = 0; r < 4; r++)
                *(EIGHT *)(z + (i + r) * n + j) = sum[r];
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i < rows ? columns : 0; j < n; j++) {
            T sum = 0;
            for (int64_t k = 0; k < n; k++) sum += x[i * n + k] * y[k * n + j];
            z[i * n + j] = sum;
        }
}
