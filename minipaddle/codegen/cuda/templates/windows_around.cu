const INDEX c = i % CHANNELS, q = i / CHANNELS;
const INDEX x = q % IW, y = q / IW % IH, z = q / (IW * IH) % ID, n = q / (IW * IH * ID);
T total = 0;
for (int u = 0; u < KD * KH * KW; u++) {
    const INDEX e = z + PD - u / (KH * KW), b = y + PH - u / KW % KH, a = x + PW - u % KW;
    if (e < 0 || b < 0 || a < 0 || e % SD || b % SH || a % SW) continue;
    if (e / SD >= OD || b / SH >= OH || a / SW >= OW) continue;
    const INDEX first_d = e / SD * SD - PD, first_h = b / SH * SH - PH;
    const INDEX first_w = a / SW * SW - PW;
    const INDEX to = (((n * OD + e / SD) * OH + b / SH) * OW + a / SW) * CHANNELS + c;
    INSIDE
}
out0[i] = STORE(total);
