"""Pooling in C by vectors of channels: for each window its pixels. What happens at a pixel is in
`pooling.py`.
"""

from __future__ import annotations

from math import prod
from string import Template

from ...engine.codegen.kernel import C_TYPES, read_template
from ...engine.codegen.writer import worth_sharing
from ..c_text import indent, share_where
from ..products import microkernel
from ..target import insert
from .pooling import PoolingWindows

ENOUGH = 30_000
"""Values read below which a second thread does not pay."""

FEW = 16
"""Most pixels of a window whose loop is unrolled, so that the place of each is known."""

LARGER = Template(read_template("larger.c", __file__))

LOOPS = read_template("windows_by_vectors.c", __file__)


class VectorWindows(PoolingWindows):
    """Windows computed by vectors of channels; `part` is true for the last, incomplete vector."""

    part = False

    def __init__(self, target, image):
        super().__init__(target, image)
        self.frame, self.images, self.size = target.frame, image.shape[0], prod(image.shape[1:])
        self.T = T = self.frame.T
        self.inputs = [C_TYPES[spec.dtype] for spec in target.specs]
        self.E = C_TYPES[target.out.dtype]  # the type in memory
        few = prod(size for size, *_ in self.attrs["windows"]) <= FEW
        self.words |= {
            "FOR": "UNROLL for" if few else "for",
            "V": f"vector_{T}", "MASK": "__typeof__(y == y)", "NONE": f"(vector_{T}){{0}}",
            "LANES": f"LANES_{T}", "IMAGES": self.images,
        }  # fmt: skip

    def read(self, E: str, pointer: str) -> str:
        return f"load_part_{E}({pointer}, left)" if self.part else f"load_{E}({pointer})"

    def write(self, E: str, pointer: str, value: str) -> str:
        name, left = ("store_part", ", left") if self.part else ("store", "")
        return f"{name}_{E}({pointer}{left}, {value});\n"

    def load(self, k: int, at: str) -> str:
        return self.read(self.inputs[k], f"in{k} + {at}")

    def store(self, value: str) -> str:
        return self.write(self.E, "out0 + to", value)

    def add(self, value: str) -> str:
        if self.apart:
            return self.write(self.E, "out0 + at", value)
        pixel = f"{self.frame.target} + at"
        return self.write(self.T, pixel, f"{self.read(self.T, pixel)} + {value}")

    def add_all(self, value: str) -> str:
        return self.taps(self.add(value))

    def larger(self, x: str, y: str) -> str:
        return f"larger_{self.T}({x}, {y})"

    def where(self, here: str, x: str) -> str:
        return f"where_{self.T}({here}, {x})"

    def each(self, define, before: str = "", clear: str = "", after: str = "") -> None:
        if not self.target.out.size:
            return
        texts = {}
        for word, self.part in (("WHOLE", False), ("PART", True)):
            texts[word] = define(self)
        w = self.words
        text = insert(LOOPS, CLEAR=clear, BEFORE=before, AFTER=after, **texts)
        met = self.images * prod(w[a] for a in ("OD", "OH", "OW", "KD", "KH", "KW", "CHANNELS"))
        pragma = share_where(worth_sharing(met, ENOUGH + 1)) if self.images > 1 else ""
        self.target.text += indent(pragma + self.target.fill(text, **w), 4)
        stored = [x for E in dict.fromkeys([*self.inputs, self.E]) for x in microkernel.stores(E)]
        self.target.helpers += [*stored, LARGER.substitute(T=self.T)]

    def spread(self, define, before: str = "") -> None:
        """For each window the text of a definition, after other pixels are filled with zeros. Half
        precision to which several windows add is summed in floats.
        """
        frame, size, E, after = self.frame, self.size, self.E, ""
        if frame.half and not self.apart:
            E, frame.target = self.T, frame.array("result", frame.out.size)
            span = f"n * {size}", f"(n + 1) * {size}"
            after = frame.convert_array("out0", "narrow", "result", frame.out, span).strip()
        clear = f"memset({frame.target} + n * {size}, 0, {size} * sizeof({E}));"
        self.each(define, before, "" if self.cover else clear, after)
        frame.target = "out0"
