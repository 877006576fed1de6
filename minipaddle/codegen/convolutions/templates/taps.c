FOR (int t = 0; t < KD * KH * KW; t++) {
    const int64_t d = first_d + t / (KH * KW), h = first_h + t / KW % KH, w = first_w + t % KW;
    CHECK
    const int64_t at = (((n * ID + d) * IH + h) * IW + w) * CHANNELS + c;
    INSIDE
}
