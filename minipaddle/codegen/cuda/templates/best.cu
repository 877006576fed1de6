    const int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.y;
    if (row >= ROWS) return;
    const E *x = in0 + row / INNER * (LENGTH * INNER) + row % INNER;
    T best = LOAD(x[0]);
    int64_t place = 0;
    for (int64_t k = threadIdx.x; k < LENGTH; k += 32) {
        const T value = LOAD(x[k * INNER]);
        if (value SIGN best || (value != value && best == best)) best = value, place = k;
    }
    for (int apart = 16; apart > 0; apart /= 2) {
        const T value = __shfl_xor_sync(0xffffffff, best, apart);
        const int64_t k = __shfl_xor_sync(0xffffffff, place, apart);
        const bool same = value == best || (value != value && best != best);
        if (same ? k < place : value SIGN best || value != value) best = value, place = k;
    }
    if (threadIdx.x == 0) out0[row] = place;
