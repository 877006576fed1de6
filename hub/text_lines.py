"""Lines of text that Pillow draws in many fonts, bent and noisy, to train a reader on.

Fonts are those of the computer (`PACKAGES` names free ones of Debian); words are those of Python's
help texts. Nothing is kept but open fonts: a line is drawn when it is asked for.
"""

import random
import re
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from text_networks import LETTERS

HEIGHT, WIDTH, LONGEST = 24, 160, 12
"""Pixels of a line, and the letters that it has at most."""

FOLDERS = (Path("/usr/share/fonts"), Path.home() / ".fonts", Path.home() / "Library/Fonts")
PACKAGES = (
    "lato cantarell freefont-ttf gnutypewriter roboto-unhinted open-sans inconsolata "
    "crosextra-carlito crosextra-caladea firacode jetbrains-mono comic-neue ebgaramond "
    "linuxlibertine noto-mono quicksand cabin junicode dejavu liberation"
)
UNSEEN = re.compile("lato|comic|caladea|inconsolata|quicksand|noto", re.IGNORECASE)
"""Families that training does not see."""
WITHOUT = re.compile(
    "symbol|math|emoji|initials|keyboard|icon|dingbat|libertine.*(_I|DR|_Z)|humor|handwriting|"
    "fifthhorseman|wqy|cjk",
    re.IGNORECASE,
)


def list_fonts(unseen: bool = False) -> list[str]:
    """The files of fonts that training sees, or of those that it does not see.

    Raises RuntimeError if there are fewer than thirty, with the command that installs them.
    """
    files = sorted(
        str(path)
        for folder in FOLDERS
        for path in folder.rglob("*")
        if path.suffix.lower() in (".ttf", ".otf") and not WITHOUT.search(str(path))
    )
    if len(files) < 30:
        packages = " ".join(f"fonts-{each}" for each in PACKAGES.split())
        raise RuntimeError(f"{len(files)} fonts are too few: apt-get install {packages}")
    return [file for file in files if bool(UNSEEN.search(file)) == unseen]


@cache
def open_font(file: str, size: int):
    """A font, opened once."""
    return ImageFont.truetype(file, size, layout_engine=ImageFont.Layout.BASIC)


@cache
def list_words() -> list[str]:
    """The words of Python's help texts."""
    from pydoc_data.topics import topics

    return sorted(set(re.findall(r"[A-Za-z']{2,12}", " ".join(topics.values()))))


def write_number(rng: random.Random) -> str:
    """A price, a date, a time, a share, or just digits."""
    n = rng.randint
    return rng.choice((
        f"{n(0, 999)}.{n(0, 99):02}", f"${n(1, 9999)}",
        f"{n(1, 31):02}/{n(1, 12):02}/{n(1990, 2040)}",
        f"{n(0, 23):02}:{n(0, 59):02}", f"{n(0, 100)}%", f"{n(1, 99)},{n(0, 999):03}.{n(0, 99):02}",
        "".join(rng.choice("0123456789") for _ in range(n(2, 10))),
        f"{n(100, 999)}-{n(1000, 9999)}",
    ))  # fmt: skip


def write_text(rng: random.Random) -> str:
    """What a line says: a word, words, a number, or a word and a number."""
    word, how = rng.choice(list_words()), rng.random()
    if how < 0.3:
        text = write_number(rng)
    elif how < 0.45:
        text = f"{word[:7]} {write_number(rng)}"
    elif how < 0.65:
        text = f"{word[:7]} {rng.choice(list_words())}"
    else:
        text = word
    case = rng.choice((str.lower, str.lower, str.capitalize, str.upper))
    return case(text[: rng.randint(5, LONGEST)]).strip()


def draw_line(text: str, file: str, rng: random.Random, height: int = HEIGHT) -> Image.Image:
    """Ink (255) on nothing (0): the text, turned, slanted and stretched a little."""
    mask = open_font(file, height).getmask(text)
    wide, high = max(mask.size[0], 1), max(mask.size[1], height // 3)
    sheet = Image.frombytes("L", mask.size, bytes(mask))
    scale = rng.uniform(0.7, 0.92) * height / high if high > height // 2 else 0.8
    across = min(scale * rng.uniform(0.8, 1.2), WIDTH / (wide + 8))
    size = max(round((wide + 8) * across), 4), height
    slant, turn = rng.uniform(-0.15, 0.15), rng.uniform(-0.02, 0.02)
    middle, middle_out = (sheet.width / 2, sheet.height / 2), (size[0] / 2, size[1] / 2)
    a, b, d, e = 1 / across, slant / scale, turn / across, 1 / scale
    up = rng.uniform(-1.2, 1.2)
    c = middle[0] - a * middle_out[0] - b * middle_out[1]
    f = middle[1] - d * middle_out[0] - e * middle_out[1] + up
    line = sheet.transform(size, Image.Transform.AFFINE, (a, b, c, d, e, f), Image.BILINEAR)
    return (
        line.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.8))) if rng.random() < 0.3 else line
    )


def draw_batch(
    rows: int, fonts: list[str], seed: int, write=write_text
) -> tuple[np.ndarray, list[str]]:
    """Lines as float32 [rows, 1, HEIGHT, WIDTH] in -1 .. 1, and what they say; `write(rng)` says
    what.
    """
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    ink, texts = np.zeros((rows, HEIGHT, WIDTH), np.float32), []
    for sheet in ink:
        text = write(rng)[:LONGEST].strip() or "a"
        line = np.asarray(draw_line(text, rng.choice(fonts), rng))[:, :WIDTH]
        free = WIDTH - line.shape[1]
        start = rng.randint(0, free if rng.random() < 0.3 else min(6, free))
        sheet[:, start : start + line.shape[1]] = line
        texts.append(text.lower())
    return shade(ink / 255, noise)[:, None], texts


def shade(ink: np.ndarray, noise: np.random.Generator) -> np.ndarray:
    """Lines in random greys on uneven, noisy grounds: dark on light, or, of four one, light on
    dark."""
    each = (len(ink), 1, 1)
    light, dark = noise.uniform(0.65, 1, each), noise.uniform(0, 0.35, each)
    dark_ground = noise.random(each) < 0.25
    ground, pen = np.where(dark_ground, dark, light), np.where(dark_ground, light, dark)
    slope = noise.uniform(-0.15, 0.15, each) * np.linspace(-1, 1, ink.shape[-1])
    grain = noise.uniform(0, 0.15, each) * (light - dark)
    clean = (ground + (pen - ground) * ink + slope).astype("float32")
    dots = noise.standard_normal(ink.shape, "float32") * grain.astype("float32")
    return 2 * np.clip(clean + dots, 0, 1) - 1


def number_letters(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Labels for CTC: int64 [rows, LONGEST], padded by 0, and the letters of each."""
    labels = np.zeros((len(texts), LONGEST), np.int64)
    for row, text in zip(labels, texts, strict=True):
        row[: len(text)] = [LETTERS.index(c) + 1 for c in text]
    return labels, np.array([len(text) for text in texts])


# ---- pages for a finder --------------------------------------------------------------------------


def draw_page(size: int, fonts: list[str], rng: random.Random, lines: int = 14) -> tuple:
    """Ink [size, size] of lines at random places, heights and angles, and where each is, clockwise
    from its top left: [n, 4, 2]. Bars and frames lie between them, which are no text.
    """
    sheet, boxes = Image.new("L", (size, size)), []
    taken = np.zeros((size, size), bool)
    for _ in range(rng.randint(0, 3)):
        x, y = rng.randint(0, size), rng.randint(0, size)
        corner = x + rng.randint(2, size), y + rng.randint(2, size // 8)
        ImageDraw.Draw(sheet).rectangle(((x, y), corner), outline=rng.randint(60, 255))
    for _ in range(lines):
        height = round(size * rng.uniform(0.06, 0.22))
        line = draw_line(write_text(rng) or "a", rng.choice(fonts), rng, height)
        line = line.crop(line.getbbox() or (0, 0, 1, 1))
        angle = rng.gauss(0, 4) if rng.random() < 0.7 else rng.uniform(-30, 30)
        turned = line.rotate(angle, Image.Resampling.BILINEAR, expand=True)
        free = size - turned.width, size - turned.height
        if min(free) < 0 or min(line.size) < 4:
            continue
        x, y = rng.randint(0, free[0]), rng.randint(0, free[1])
        window = (
            slice(max(y - 3, 0), y + turned.height + 3),
            slice(max(x - 3, 0), x + turned.width + 3),
        )
        if taken[window].any():
            continue
        taken[window] = True
        clear = Image.new("L", turned.size)
        sheet.paste(clear, (x, y))
        sheet.paste(turned, (x, y))
        turn = np.deg2rad(-angle)
        rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        w, h = line.size
        corners = np.array([[-w, -h], [w, -h], [w, h], [-w, h]]) / 2
        boxes.append(corners @ rotation.T + [x + turned.width / 2, y + turned.height / 2])
    return np.asarray(sheet), np.array(boxes).reshape(-1, 4, 2)


def draw_pages(rows: int, size: int, fonts: list[str], seed: int) -> tuple[np.ndarray, list]:
    """Pages as float32 [rows, 3, size, size] in -1 .. 1, in colours, and the boxes of each."""
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    pages = [draw_page(size, fonts, rng) for _ in range(rows)]
    grey = shade(np.stack([ink for ink, _ in pages]) / np.float32(255), noise)
    tint = noise.uniform(0.6, 1, (rows, 3, 1, 1)).astype("float32")
    return (grey[:, None] + 1) * tint - 1, [boxes for _, boxes in pages]
