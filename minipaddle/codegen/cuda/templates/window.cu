const int64_t c = to % CHANNELS, p = to / CHANNELS;
const int64_t first_w = p % OW * SW - PW, first_h = p / OW % OH * SH - PH;
const int64_t first_d = p / (OW * OH) % OD * SD - PD, n = p / (OW * OH * OD);
