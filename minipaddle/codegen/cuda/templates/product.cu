    const int column = blockIdx.x % ACROSS * TILE + threadIdx.x;
    const int row = blockIdx.x / ACROSS % DOWN * TILE + threadIdx.y;
    int64_t batch = blockIdx.x / (ACROSS * DOWN);
    int64_t at_x = 0, at_y = 0, at_out = 0;
BATCH
    __shared__ T tile_x[TILE][TILE], tile_y[TILE][TILE + 1];
    T sum = 0;
    for (int first = 0; first < DEPTH; first += TILE) {
        const int kx = first + threadIdx.x, ky = first + threadIdx.y;
        tile_x[threadIdx.y][threadIdx.x] = row < ROWS && kx < DEPTH
            ? LOAD(x[at_x + (int64_t)row * MX + (int64_t)kx * KX]) : 0;
        tile_y[threadIdx.y][threadIdx.x] = column < COLUMNS && ky < DEPTH
            ? LOAD(y[at_y + (int64_t)column * NY + (int64_t)ky * KY]) : 0;
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += tile_x[threadIdx.y][k] * tile_y[k][threadIdx.x];
        __syncthreads();
    }
    if (row < ROWS && column < COLUMNS)
        out[at_out + (int64_t)row * MOUT + (int64_t)column * NOUT] = STORE(sum);
