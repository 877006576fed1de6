
const INDEX c = i % CHANNELS, t = i / CHANNELS % TAPS, p = i / (CHANNELS * TAPS) % POSITIONS;
const INDEX n = i / (CHANNELS * TAPS * POSITIONS) % IMAGES;
const INDEX g = i / (CHANNELS * TAPS * POSITIONS * IMAGES);
const INDEX d = p / (OH * OW) * SD - PD + t / (KH * KW) * GD;
const INDEX h = p / OW % OH * SH - PH + t / KW % KH * GH;
const INDEX w = p % OW * SW - PW + t % KW * GW;
const bool inside = d >= 0 && d < ID && h >= 0 && h < IH && w >= 0 && w < IW;
columns[i] = inside ? x[(((n * ID + d) * IH + h) * IW + w) * (GROUPS * CHANNELS) + g * CHANNELS + c]
    : PACK{};
