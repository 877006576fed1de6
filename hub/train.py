"""Train the models of this folder: `python hub/train.py [NAME ...]`. Weights and scores replace
those in `hub/weights` and `hub/scores.json`. On two cores `lenet_digits` takes ten seconds,
`char_gpt` some minutes.
"""

import json
import sys
from pathlib import Path

import numpy as np
from rich.progress import track

import minipaddle as paddle
from minipaddle import hub
from minipaddle.nn import functional as F

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


def main(names) -> None:
    for name in names or ("lenet_digits", "char_gpt"):
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
