"""Pooling in C by vectors of channels: for each window its pixels. What happens at a pixel is in
`pooling.py`.
"""

from __future__ import annotations

from math import prod
from string import Template

from ...engine.codegen.kernel import read_template
from ...engine.codegen.writer import worth_sharing
from ..c_text import indent, share_where
from ..products import microkernel
from ..target import insert
from .pooling import PoolingWindows

ENOUGH = 30_000
"""Values read below which a second thread does not pay."""

LARGER = Template(read_template("larger.c", __file__))

LOOPS = read_template("windows_by_vectors.c", __file__)


class VectorWindows(PoolingWindows):
    """Windows computed by vectors of channels; `part` is true for the last, incomplete vector."""

    part = False

    def __init__(self, target, image):
        super().__init__(target, image)
        self.frame, self.images, self.size = target.frame, image.shape[0], prod(image.shape[1:])
        self.T = T = self.frame.T
        self.words |= {
            "V": f"vector_{T}", "MASK": "__typeof__(y == y)", "NONE": f"(vector_{T}){{0}}",
            "LANES": f"LANES_{T}", "IMAGES": self.images,
        }  # fmt: skip

    def read(self, pointer: str) -> str:
        return f"load_part_{self.T}({pointer}, left)" if self.part else f"load_{self.T}({pointer})"

    def write(self, pointer: str, value: str) -> str:
        name, left = ("store_part", ", left") if self.part else ("store", "")
        return f"{name}_{self.T}({pointer}{left}, {value});\n"

    def load(self, k: int, at: str) -> str:
        return self.read(f"{self.frame.names[k]} + {at}")

    def store(self, value: str) -> str:
        return self.write(f"{self.frame.target} + to", value)

    def add(self, value: str) -> str:
        pixel = f"{self.frame.target} + at"
        return self.write(pixel, value if self.apart else f"{self.read(pixel)} + {value}")

    def add_all(self, value: str) -> str:
        return self.taps(self.add(value))

    def larger(self, x: str, y: str) -> str:
        return f"larger_{self.T}({x}, {y})"

    def where(self, here: str, x: str) -> str:
        return f"where_{self.T}({here}, {x})"

    def each(self, define, before: str = "", clear: str = "") -> None:
        if not self.target.out.size:
            return
        texts = {}
        for word, self.part in (("WHOLE", False), ("PART", True)):
            texts[word] = define(self)
        w, text = self.words, insert(LOOPS, CLEAR=clear, BEFORE=before, **texts)
        met = self.images * prod(w[a] for a in ("OD", "OH", "OW", "KD", "KH", "KW", "CHANNELS"))
        pragma = share_where(worth_sharing(met, ENOUGH + 1)) if self.images > 1 else ""
        self.target.text += indent(pragma + self.target.fill(text, **w), 4)
        self.target.helpers += [*microkernel.vectors(self.T), LARGER.substitute(T=self.T)]

    def spread(self, define, before: str = "") -> None:
        """For each window the text of a definition, after other pixels are filled with zeros."""
        to, size = self.frame.target, self.size
        clear = f"memset({to} + n * {size}, 0, {size} * sizeof(T));"
        self.each(define, before, "" if self.cover else clear)
