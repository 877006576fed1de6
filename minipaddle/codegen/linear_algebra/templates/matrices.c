/* LAPACK has matrices by columns. */
static void BYCOLUMNS(const E *x, T *y, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) y[j * rows + i] = LOAD(x[i * columns + j]);
}

static void BYROWS(const T *x, E *y, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) y[i * columns + j] = STORE(x[j * rows + i]);
}
