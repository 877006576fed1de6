static void MULTIPLY(const T *x, const T *y, T *restrict z, int64_t n)
{
    memset(z, 0, n * n * sizeof(T));
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < n; j++) z[i * n + j] += x[i * n + k] * y[k * n + j];
}
