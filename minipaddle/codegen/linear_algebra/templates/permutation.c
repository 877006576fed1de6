for (int64_t b = 0; b < COUNT; b++) {
    for (int64_t i = 0; i < N; i++) order[i] = i;
    for (int64_t k = 0; k < STEPS; k++) {
        const int64_t p = in0[b * STEPS + k] - 1, x = order[k];
        if (p < 0 || p >= N) GIVE_UP
        order[k] = order[p];
        order[p] = x;
    }
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++) out0[(b * N + i) * N + j] = STORE(order[j] == i);
}
