"""Importing this hides every library but NumPy from what is imported afterwards."""

import sys

BEFORE = set(sys.modules)


class OnlyNumPy:
    """A finder that comes first and refuses."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("minipaddle", "ml_dtypes", "scipy", "cupy"):
            raise ImportError(f"{name} is not for the engine")


sys.meta_path.insert(0, OnlyNumPy())
