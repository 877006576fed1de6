PARALLEL
for (int64_t plane = 0; plane < LINES; plane++) {
    CONST *image = IMAGES + plane * IMAGE;
    WRITTEN *column = LISTS + plane * COLUMNS;
    BEGIN
    for (int64_t tap = 0; tap < KD * KH * KW; tap++) {
        const int64_t first = tap % KW * DW - PW, end = IW - first;
        const int64_t start = first < 0 ? (SW - 1 - first) / SW : 0;
        const int64_t inside = end > 0 ? (end + SW - 1) / SW : 0;
        for (int64_t o = 0; o < OD * OH; o++, column += OW) {
            const int64_t d = o / OH * SD + tap / (KH * KW) * DD - PD;
            const int64_t h = o % OH * SH + tap / KW % KH * DH - PH;
            const int there = d >= 0 && d < ID && h >= 0 && h < IH;
            const int64_t high = !there ? 0 : inside < OW ? inside : OW;
            const int64_t low = start < high ? start : high;
            CONST *row = image + (d * IH + h) * IW + first;
            INSIDE
        }
    }
    END
}
