const INDEX c = to % CHANNELS, p = to / CHANNELS;
const INDEX first_w = p % OW * SW - PW, first_h = p / OW % OH * SH - PH;
const INDEX first_d = p / (OW * OH) % OD * SD - PD, n = p / (OW * OH * OD);
