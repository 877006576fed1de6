"""Train a network of others further: PP-OCRv4's reader on a handwriting, which it reads badly.

`python hub/finetune.py [FONT]` prints the errors on words that it did not see, before and after.
The font is one of Debian's fonts-dkg-handwriting unless a file is named; `hubconf.pp_ocr_v4` says
where the reader comes from.
"""

import random
import sys
from functools import cache
from pathlib import Path

import numpy as np
import text_lines
from PIL import Image, ImageDraw

import minipaddle as paddle
from minipaddle.engine.core.errors import runtime_error
from minipaddle.nn import functional as F
from minipaddle.vision import ocr

HEIGHT, WIDTH, LONGEST = 48, 160, 8
"""Pixels of a line, and the letters that it has at most."""


def find_font(name: str = "dkgBI.ttf") -> str | None:
    """A font of the computer by the name of its file; None if there is none."""
    paths = (path for folder in text_lines.FOLDERS for path in folder.rglob(name))
    return next(map(str, paths), None)


@cache
def list_words(unseen: bool = False) -> list[str]:
    """Words to train on, or 128 others."""
    words = [word for word in text_lines.list_words() if word.isalpha() and len(word) <= LONGEST]
    random.Random(0).shuffle(words)
    return words[:128] if unseen else words[128:]


def draw_words(words: list[str], font: str) -> np.ndarray:
    """Words as a reader takes them: float32 [n, 3, HEIGHT, WIDTH] from -1 to 1. Each is as large as
    fits, whole, as if a finder had cut it out.
    """
    pen, lines = text_lines.open_font(font, HEIGHT), []
    for word in words:
        left, top, right, bottom = pen.getbbox(word)
        sheet = Image.new("L", (right - left + 8, bottom - top + 8), 255)
        ImageDraw.Draw(sheet).text((4 - left, 4 - top), word, 0, font=pen)
        scale = min(WIDTH / sheet.width, HEIGHT / sheet.height)
        size = round(scale * sheet.width), round(scale * sheet.height)
        line = Image.new("RGB", (WIDTH, HEIGHT), "white")
        line.paste(sheet.resize(size, Image.Resampling.BILINEAR), (0, (HEIGHT - size[1]) // 2))
        lines.append(np.asarray(line, np.float32) / 127.5 - 1)
    return np.stack(lines).transpose(0, 3, 1, 2)


def read_words(reader, letters, pictures: np.ndarray, rows: int = 8) -> list[str]:
    """What a reader says of lines."""
    with paddle.no_grad():
        parts = (pictures[k : k + rows] for k in range(0, len(pictures), rows))
        scores = [row for part in parts for row in reader(paddle.to_tensor(part)).numpy()]
    return ["".join(letters[k - 1] for k in ocr.decode_greedily(row)[0]) for row in scores]


def count_edits(one: str, other: str) -> int:
    """The fewest letters to put in, leave out or replace that make one text of another."""
    row = [*range(len(other) + 1)]
    for k, letter in enumerate(one, 1):
        last, row[0] = row[0], k
        for j, wanted in enumerate(other, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (letter != wanted))
    return row[-1]


def measure_errors(answers: list[str], words: list[str]) -> float:
    """The edits that answers need, as a share of the letters there are."""
    return sum(map(count_edits, answers, words)) / sum(map(len, words))


def build_step(reader, rate: float):
    """A training step of a reader that ends in its softmax, as one program. Batch norms keep the
    statistics of the millions of lines that it saw before: eight say too little.
    """
    reader.eval()
    adam = paddle.optimizer.Adam(rate, parameters=reader.parameters())

    @paddle.jit.to_static(backend="native")
    def step(pictures, labels, counts):
        scores = (reader(pictures) + 1e-9).log().transpose([1, 0, 2])
        long = paddle.full([pictures.shape[0]], scores.shape[0], "int64")
        loss = F.ctc_loss(scores, labels, long, counts)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    return step


def tune(reader, letters, font: str, steps: int = 60, rows: int = 8, rate=1e-4) -> list[float]:
    """Adam on drawn words; the losses."""
    step, rng, losses = build_step(reader, rate), random.Random(0), []
    number = {letter: k + 1 for k, letter in enumerate(letters)}
    for _ in range(steps):
        words = rng.choices(list_words(), k=rows)
        labels = np.zeros((rows, LONGEST), np.int64)
        for row, word in zip(labels, words, strict=True):
            row[: len(word)] = [number[letter] for letter in word]
        batch = draw_words(words, font), labels, np.array([*map(len, words)])
        losses.append(step(*map(paddle.to_tensor, batch)).item())
    return losses


def main(font: str | None = None) -> None:
    font, words = font or find_font(), list_words(unseen=True)
    if font is None:
        hint = "apt-get install fonts-dkg-handwriting, or name the file of a font"
        raise runtime_error("there is no handwriting dkgBI.ttf", hint=hint)
    parts = paddle.hub.load(Path(__file__).parent, "pp_ocr_v4", source="local")
    pictures = draw_words(words, font)
    for when in ("before", "after"):
        if when == "after":
            tune(parts.reader, parts.letters, font)
        answers = read_words(parts.reader, parts.letters, pictures)
        right = sum(map(str.__eq__, answers, words))
        errors = 100 * measure_errors(answers, words)
        print(f"{when}: {right} of {len(words)} words, {errors:.1f} % of characters wrong")


if __name__ == "__main__":
    main(*sys.argv[1:2])
