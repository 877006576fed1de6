for (int64_t n = 0; n < IMAGES; n++) {
    CLEAR
    for (int64_t p = 0; p < OD * OH * OW; p++) {
        const int64_t first_d = p / (OH * OW) * SD - PD;
        const int64_t first_h = p / OW % OH * SH - PH, first_w = p % OW * SW - PW;
        BEFORE
        int64_t c = 0;
        for (; c + LANES <= CHANNELS; c += LANES) {
            const int64_t to = (n * (OD * OH * OW) + p) * CHANNELS + c;
            WHOLE
        }
        if (c < CHANNELS) {
            const int64_t left = CHANNELS - c;
            const int64_t to = (n * (OD * OH * OW) + p) * CHANNELS + c;
            PART
        }
    }
    AFTER
}
