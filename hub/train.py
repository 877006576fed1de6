"""Train the models of this folder: `python hub/train.py [NAME ...]`. Weights and scores replace
those in `hub/weights` and `hub/scores.json`. On two cores `lenet_digits` takes ten seconds, the
others some minutes. `text_reader` and `text_finder` draw their lines in the fonts of the computer
(`text_lines.py` names free ones).
"""

import json
import sys
from pathlib import Path

import numpy as np
import text_lines as lines
from rich.progress import track
from text_networks import OPTIONS

import minipaddle as paddle
from minipaddle import hub, nn
from minipaddle.codegen.machine import facts
from minipaddle.nn import functional as F
from minipaddle.vision import ocr

HERE = Path(__file__).parent
MODELS = hub.module_of(HERE, "local", force_reload=False)


def step_of(net, optimizer):
    """A training step as one program."""

    @paddle.jit.to_static(backend="native")
    def step(x, y):
        scores = net(x)
        loss = F.cross_entropy(scores.reshape([-1, scores.shape[-1]]), y.reshape([-1]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return step


def lenet_digits(net, epochs=30, rows=32, rate=2e-3) -> dict:
    """Adam, the rate falling along a cosine."""
    train, test = (paddle.vision.datasets.Digits(mode=mode) for mode in ("train", "test"))
    loader = paddle.io.DataLoader(train, batch_size=rows, shuffle=True, drop_last=True)
    rate = paddle.optimizer.lr.CosineAnnealingDecay(rate, epochs)
    step = step_of(net, paddle.optimizer.Adam(rate, parameters=net.parameters()))
    net.train()
    for _ in track(range(epochs), "lenet_digits"):
        for images, labels in loader:
            step(images.reshape([-1, 1, 8, 8]), labels)
        rate.step()
    net.eval()
    images, labels = (np.stack(each) for each in zip(*test))
    right = net(paddle.to_tensor(images).reshape([-1, 1, 8, 8])).numpy().argmax(-1) == labels
    return {
        "score": f"{100 * right.mean():.1f} % of {len(labels)} digits of scikit-learn's that it "
        "did not see are read right.",
        "recipe": f"{epochs} epochs of Adam in batches of {rows}, rate {rate.base_lr} along a "
        "cosine.",
    }


def english(letters: str) -> np.ndarray:
    """The help texts that come with Python, as tokens."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    return np.array([letters.index(c) for c in text if c in letters])


def char_gpt(net, steps=3000, rows=16, rate=3e-3) -> dict:
    """AdamW, the rate rising for 100 steps, then falling along a cosine."""
    n, tokens = net.context, english(MODELS.LETTERS)
    cut = len(tokens) * 9 // 10
    train, test = tokens[:cut], tokens[cut:]
    falling = paddle.optimizer.lr.CosineAnnealingDecay(rate, steps - 100, eta_min=rate / 20)
    rates = paddle.optimizer.lr.LinearWarmup(falling, 100, 0.0, rate)
    step = step_of(net, paddle.optimizer.AdamW(rates, parameters=net.parameters()))
    rng = np.random.default_rng(0)
    net.train()
    for _ in track(range(steps), "char_gpt"):
        starts = rng.integers(0, len(train) - n - 1, (rows, 1)) + np.arange(n + 1)
        x, y = train[starts[:, :-1]], train[starts[:, 1:]]
        step(paddle.to_tensor(x), paddle.to_tensor(y))
        rates.step()
    net.eval()
    test = test[: len(test) // (n + 1) * (n + 1)].reshape(-1, n + 1)
    with paddle.no_grad():
        losses = [
            float(
                F.cross_entropy(net(paddle.to_tensor(each[:, :-1])), paddle.to_tensor(each[:, 1:]))
            )
            for each in np.array_split(test, -(-len(test) // 32))
        ]
    bits = np.mean(losses) / np.log(2)
    return {
        "score": f"{bits:.2f} bits a letter on the last tenth of Python's help texts, which it did "
        "not see.",
        "recipe": f"{steps} steps of AdamW on {rows} pieces of {n} letters, rate {rate} along a "
        "cosine.",
    }


# ---- reading text --------------------------------------------------------------------------------


class Drawn(paddle.io.Dataset):
    """Batches that are drawn when they are asked for, each once: `draw(number)`."""

    def __init__(self, steps: int, draw):
        self.steps, self.draw = steps, draw

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, k: int):
        return self.draw(k)


def learn(net, name: str, steps: int, rate: float, draw, loss_of) -> None:
    """AdamW on `loss_of(*batch)`, the rate rising for 200 steps, then falling along a cosine."""
    falling = paddle.optimizer.lr.CosineAnnealingDecay(rate, steps - 200, eta_min=rate / 100)
    rates = paddle.optimizer.lr.LinearWarmup(falling, 200, 0.0, rate)
    clip = nn.ClipGradByGlobalNorm(5.0)
    optimizer = paddle.optimizer.AdamW(rates, parameters=net.parameters(), grad_clip=clip)

    @paddle.jit.to_static(backend="native")
    def step(*batch):
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    net.train()
    loader = paddle.io.DataLoader(Drawn(steps, draw), batch_size=None, num_workers=1)
    for batch in track(loader, name, total=steps):
        step(*batch)
        rates.step()
    net.eval()


def text_reader(net, steps=10_000, rows=32, rate=2e-3) -> dict:
    """CTC on lines drawn in the fonts that training sees. The network computes in bfloat16 where
    the processor multiplies such numbers.
    """
    fonts = lines.list_fonts()

    def draw(k: int):
        pictures, texts = lines.draw_batch(rows, fonts, k)
        return pictures, *lines.number_letters(texts)

    def loss_of(pictures, labels, counts):
        with paddle.amp.auto_cast(enable=facts().bf16, dtype="bfloat16"):
            scores = net.score(pictures).transpose([1, 0, 2])
        scores = scores.cast("float32")
        long = paddle.full([rows], scores.shape[0], "int64")
        return F.ctc_loss(scores, labels, long, counts)

    learn(net, "text_reader", steps, rate, draw, loss_of)
    seen, unseen = (count_right(net, lines.list_fonts(each)) for each in (False, True))
    return {
        "score": f"{100 * unseen:.1f} % of lines in fonts of families that it did not see are read "
        f"without an error, {100 * seen:.1f} % in fonts that it saw.",
        "recipe": f"{steps} steps of AdamW on {rows} lines, drawn in {len(fonts)} fonts, rate "
        f"{rate} along a cosine.",
    }


def count_right(net, fonts: list[str], rows=2048) -> float:
    """The share of lines that are read without an error."""
    pictures, texts = lines.draw_batch(rows, fonts, seed=2**31)
    with paddle.no_grad():
        scores = [net.score(paddle.to_tensor(x)).numpy() for x in np.split(pictures, rows // 64)]
    paths = np.concatenate(scores).argmax(-1)
    read = ("".join(lines.LETTERS[k - 1] for k in ocr.collapse(path)).strip() for path in paths)
    return float(np.mean([one == other for one, other in zip(read, texts, strict=True)]))


def text_finder(net, steps=1500, rows=8, rate=3e-3, size=192) -> dict:
    """The shrink map by its probability, and by the step that learns its threshold."""
    fonts = lines.list_fonts()

    def draw(k: int):
        pictures, pages = lines.draw_pages(rows, size, fonts, k)
        maps = [ocr.shrink_map(boxes / 4, size // 4, size // 4, least=1) for boxes in pages]
        return pictures, *(np.stack(each)[:, None] for each in zip(*maps, strict=True))

    def loss_of(pictures, maps, mask):
        probability, threshold = net(pictures)
        step = ocr.binarize(probability, threshold)
        overlap = 2 * (step * maps * mask).sum() / (((step + maps) * mask).sum() + 1)
        return F.binary_cross_entropy(probability, maps, mask) + 1 - overlap

    learn(net, "text_finder", steps, rate, draw, loss_of)
    recall, precision = measure_finder(net, lines.list_fonts(unseen=True), size)
    return {
        "score": f"{100 * recall:.1f} % of the lines in fonts that it did not see are found, and "
        f"{100 * precision:.1f} % of what it finds is one (their boxes share a half).",
        "recipe": f"{steps} steps of AdamW on {rows} drawn pages of {size} x {size} pixels, rate "
        f"{rate} along a cosine.",
    }


def measure_finder(net, fonts: list[str], size: int, rows=128) -> tuple[float, float]:
    """(recall, precision): a line and a box are one if they share half of what they cover."""
    pictures, pages = lines.draw_pages(rows, size, fonts, seed=2**31)
    chosen = {name: OPTIONS[name] for name in ("threshold", "ratio")}
    hits = there = boxes_found = 0
    with paddle.no_grad():
        maps = [net(paddle.to_tensor(x)).numpy() for x in np.split(pictures, rows // 16)]
    for probability, boxes in zip(np.concatenate(maps)[:, 0], pages, strict=True):
        masks, others = (
            [ocr.fill_polygon(box, size, size) for box in each]
            for each in (boxes, ocr.find_boxes(probability, **chosen)[0])
        )
        hits += sum(any((a & b).sum() > (a | b).sum() / 2 for b in others) for a in masks)
        there, boxes_found = there + len(masks), boxes_found + len(others)
    return hits / there, hits / max(boxes_found, 1)


NAMES = ("lenet_digits", "char_gpt", "text_reader", "text_finder")


def main(names) -> None:
    for name in names or NAMES:
        paddle.seed(0)
        net = getattr(MODELS, name)()
        found = globals()[name](net)
        for old in HERE.glob(f"weights/{name}-*.safetensors"):
            old.unlink()
        path = hub.save_weights(net, HERE / "weights", name)
        file = HERE / "scores.json"
        scores = json.loads(file.read_text(encoding="utf-8"))
        scores[name] = found | {"weights": path.relative_to(HERE).as_posix()}
        text = json.dumps(scores, indent=1, sort_keys=True, ensure_ascii=False)
        file.write_text(text + "\n", encoding="utf-8")
        print(name, found["score"])


if __name__ == "__main__":
    main(sys.argv[1:])
