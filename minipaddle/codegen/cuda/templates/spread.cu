
const INDEX c = i % CHANNELS, g = i / CHANNELS % GROUPS, q = i / (CHANNELS * GROUPS);
const INDEX w = q % IW, h = q / IW % IH, d = q / (IW * IH) % ID, n = q / (IW * IH * ID);
T sum[LANES] = {};
for (int t = 0; t < TAPS; t++) {
    const INDEX a = d + PD - t / (KH * KW) * GD, b = h + PH - t / KW % KH * GH;
    const INDEX e = w + PW - t % KW * GW;
    if (a < 0 || b < 0 || e < 0 || a % SD || b % SH || e % SW) continue;
    if (a / SD >= OD || b / SH >= OH || e / SW >= OW) continue;
    const INDEX p = (a / SD * OH + b / SH) * OW + e / SW;
    const PACK pack = columns[(((g * IMAGES + n) * POSITIONS + p) * TAPS + t) * CHANNELS + c];
#pragma unroll
    for (int k = 0; k < LANES; k++) sum[k] += LOAD(pack.of[k]);
}
PACK pack;
#pragma unroll
for (int k = 0; k < LANES; k++) pack.of[k] = STORE(sum[k]);
image[i] = pack;
