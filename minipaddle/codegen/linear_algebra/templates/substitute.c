const int64_t n = M, columns = N;
for (int64_t b = 0; b < COUNT; b++) {
    const E *x = in0 + LEFT, *given = in1 + RIGHT;
    E *made = out0 + b * n * columns;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < columns; j++) y[i * WIDTH + j] = LOAD(given[i * columns + j]);
        for (int64_t j = columns; j < WIDTH; j++) y[i * WIDTH + j] = 0;
    }
    for (int64_t s = 0; s < n; s++) {
        const int64_t i = ROW(s);
        const double scale = DIAGONAL;
        if (scale == 0) GIVE_UP
        for (int64_t from = 0; from < WIDTH; from += 8) {
            double sum[8] = {0};
            for (int64_t t = 0; t < s; t++) {
                const int64_t k = ROW(t);
                const double factor = LOAD(x[FACTOR]);
                for (int j = 0; j < 8; j++) sum[j] += factor * y[k * WIDTH + from + j];
            }
            double *own = y + i * WIDTH + from;
            for (int j = 0; j < 8; j++) own[j] = (own[j] - sum[j]) / scale;
        }
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < columns; j++) made[i * columns + j] = STORE(y[i * WIDTH + j]);
}
