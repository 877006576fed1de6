"""Passes beyond the book's. Importing this registers them with the engine, each at its place."""

from ..engine.passes.registry import PASSES, insert
from . import add_to, chain, epilogue, layout, pieces, products, sinking, turning

insert("layout", "products", "pieces", after="expand")
insert("sinking", "folding", "add_to", "algebra", "common", after="common")
insert("turning", before="fusion")
insert("epilogue", "chain", after="fusion")

__all__ = [
    "PASSES", "add_to", "chain", "epilogue", "layout", "pieces", "products", "sinking", "turning",
]  # fmt: skip
