int next = -1, first = 1;
for (int64_t n = i + 1; n < COUNT && next < 0; n++)
    if (in1[n] == at || in1[n] == at - SIZE) next = n;
for (int64_t n = i - 1; n >= 0 && first; n--)
    if (in1[n] == at || in1[n] == at - SIZE) first = 0;
chain[2 * i] = next, chain[2 * i + 1] = first;
