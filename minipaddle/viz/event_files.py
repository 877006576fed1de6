"""Event files for TensorBoard and VisualDL, written by their own libraries."""

import importlib

from ..engine.core.errors import teach, value_error
from ..engine.eager.tensor import Tensor

LIBRARIES = {
    "tensorboard": ("tensorboardX", "SummaryWriter"),
    "visualdl": ("visualdl", "LogWriter"),
}
"""For each viewer, the library that writes its files and the class that does it."""


class LogWriter:
    """Writes numbers, texts, histograms and pictures for TensorBoard or VisualDL to `logdir`.

    Every method of the library's own writer is there (`add_scalar(tag, value, step)`,
    `add_histogram`, `add_text`, `add_image`, `flush`, `close`, …), and takes tensors too. `viewer`
    is "tensorboard", "visualdl", or None for the first whose library is installed; ImportError says
    what to install. Source: VisualDL's `LogWriter`, tensorboardX's `SummaryWriter`.

    >>> from minipaddle import viz
    >>> with viz.LogWriter("runs/first") as log:  # doctest: +SKIP
    ...     log.add_scalar("loss", paddle.to_tensor(0.5), 1)
    """

    def __init__(self, logdir, viewer: str | None = None, **options):
        self.logdir = str(logdir)
        self.writer = writer_class(viewer)(logdir=self.logdir, **options)

    def __getattr__(self, name: str):
        if name.startswith("_") or name == "writer":
            raise AttributeError(name)
        method = getattr(self.writer, name)

        def call(*args, **kwargs):
            args = [plain(x) for x in args]
            return method(*args, **{k: plain(v) for k, v in kwargs.items()})

        return call

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.writer.close()


def writer_class(viewer: str | None):
    """The writer of a viewer's library; raises ImportError or ValueError with a hint."""
    if viewer not in (None, *LIBRARIES):
        raise value_error(f"no viewer {viewer!r}", expected=" or ".join(map(repr, LIBRARIES)))
    for library, name in [LIBRARIES[viewer]] if viewer else LIBRARIES.values():
        try:
            return getattr(importlib.import_module(library), name)
        except ImportError:
            continue
    hint = "pip install 'minipaddle[book]' (tensorboardX, for TensorBoard and VisualDL)"
    if viewer == "visualdl":
        hint = 'pip install visualdl; or viewer="tensorboard", whose files VisualDL reads too'
    whose = f" for {viewer}" if viewer else ""
    raise ImportError(teach(f"no library to write event files{whose}", hint=hint))


def plain(x):
    """A tensor as NumPy's array (one element: as a number); anything else as it is."""
    if isinstance(x, Tensor):
        return x.item() if x.size == 1 else x.numpy()
    return x
