"""Indexing and assignment."""

from __future__ import annotations


class Indexing:
    """`x[...]` and `x[...] = v`."""
