/* to[o, g, c] = from[c, g, o]: the weights of one tap with inputs and outputs exchanged */
static void turned_$T($T *to, const $T *from, int64_t C, int64_t O, int64_t groups)
{
    for (int64_t o = 0; o < O; o++)
        for (int64_t g = 0; g < groups; g++)
            for (int64_t c = 0; c < C; c++)
                to[(o * groups + g) * C + c] = from[(c * groups + g) * O + o];
}
