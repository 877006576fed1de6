"""Convolutions as sweeps over strips of images; Winograd's tiles, pooling, resampling."""
