
const int64_t c = i % CHANNELS, g = i / CHANNELS % GROUPS, q = i / (CHANNELS * GROUPS);
const int64_t w = q % IW, h = q / IW % IH, d = q / (IW * IH) % ID, n = q / (IW * IH * ID);
T sum = 0;
for (int t = 0; t < TAPS; t++) {
    const int64_t a = d + PD - t / (KH * KW) * GD, b = h + PH - t / KW % KH * GH;
    const int64_t e = w + PW - t % KW * GW;
    if (a < 0 || b < 0 || e < 0 || a % SD || b % SH || e % SW) continue;
    if (a / SD >= OD || b / SH >= OH || e / SW >= OW) continue;
    const int64_t p = (a / SD * OH + b / SH) * OW + e / SW;
    sum += LOAD(columns[(((g * IMAGES + n) * POSITIONS + p) * TAPS + t) * CHANNELS + c]);
}
image[i] = STORE(sum);
