"""Rendered capital letters: 26 kinds, 16 × 16 pixels, turned and moved, in matplotlib's fonts."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import ascii_uppercase

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import minipaddle as paddle

SIDE, EACH, HELD = 16, 12, 3
"""Pixels, images of a letter in a font, and how many of these are held out."""


def fonts() -> list:
    """The fonts that have ordinary letters."""
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    files = sorted(p for p in folder.glob("DejaVu*.ttf") if "Display" not in p.name)
    return [ImageFont.truetype(str(file), 40) for file in files]


def drawn(letter: str, font, rng) -> np.ndarray:
    """One image, white on black, from 0 to 1."""
    image = Image.new("L", (64, 64))
    place = tuple(32 + rng.uniform(-5, 5, 2))
    ImageDraw.Draw(image).text(place, letter, 255, font, anchor="mm")
    image = image.rotate(rng.uniform(-20, 20)).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.asarray(image, "float32") / 255 + rng.normal(0, 0.15, (SIDE, SIDE))


@cache
def letters(mode: str):
    """All images and labels of a part of the data."""
    rng, parts = np.random.default_rng(0), {"train": [], "test": []}
    for font in fonts():
        for label, letter in enumerate(ascii_uppercase):
            for k in range(EACH):
                part = "test" if k < HELD else "train"
                parts[part].append((drawn(letter, font, rng), label))
    images, labels = zip(*parts[mode], strict=True)
    images = np.stack(images)[:, None].astype("float32")
    return paddle.to_tensor(images), paddle.to_tensor(np.array(labels))
