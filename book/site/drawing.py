"""A page to draw a digit on: chapter 5's network, trained here, as WebAssembly."""

import ast
import tempfile
from importlib.util import find_spec
from pathlib import Path

import nbformat

import minipaddle as paddle
from minipaddle import nn
from minipaddle.learn.chapters import BOOK
from minipaddle.vision.datasets import Digits

PAGE = "digits"
CHAPTER = "05_convolutions"
EPOCHS = 12
TEXT = """---
orphan: true
---

# Draw a digit

The network of [](/{chapter}.ipynb), trained while this site was built, reads it.

```{{raw}} html
{model}
<script>
new MutationObserver(paint).observe(document.documentElement, {{attributes: true}});
</script>
```

Back to [the book](/index.md).
"""
"""The page; what is drawn has the colour of the text, which changes with the theme."""


def write_drawing() -> str:
    """The text of the page. `can_draw` says whether there is a compiler for it."""
    image = paddle.static.InputSpec([1, 1, 8, 8])
    with tempfile.TemporaryDirectory() as work:
        paddle.jit.save(trained(), f"{work}/digits", [image], format="wasm")
        page = Path(work, "digits/index.html").read_text(encoding="utf-8")
    _, _, model = page.partition("</h1>\n")  # the rest of the page has another look
    return TEXT.format(chapter=CHAPTER, model=model)


def can_draw() -> bool:
    """Whether this machine can compile for WebAssembly."""
    return find_spec("ziglang") is not None


def trained():
    """The convnet of chapter 5, trained as the chapter does it."""
    names = {"paddle": paddle, "nn": nn, "F": nn.functional, "train": Digits(mode="train")}
    exec(compile(functions_of(CHAPTER, "convnet", "step_of"), CHAPTER, "exec"), names)
    net, step = names["convnet"](), names["step_of"]
    adam = paddle.optimizer.Adam(0.005, parameters=net.parameters())
    for _ in range(EPOCHS):
        for images, labels in paddle.io.DataLoader(names["train"], batch_size=32, shuffle=True):
            step(net, adam, images, labels)
    net.eval()
    return net


def functions_of(chapter: str, *wanted: str) -> ast.Module:
    """The functions of these names in the cells of a chapter."""
    cells = nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4).cells
    texts = (c.source for c in cells if c.cell_type == "code" and not c.source.startswith("%"))
    nodes = [node for text in texts for node in ast.parse(text).body]
    found = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.name in wanted]
    return ast.Module(found, [])
