"""Tests see kernels as the emitters' rules make them, whatever was tuned on this machine."""

import os

os.environ.setdefault("MINIPADDLE_TUNED", "0")
