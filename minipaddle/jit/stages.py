"""A function before and after each converter."""

import ast
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from ..engine.jit.source import source_of
from ..engine.jit.transpile import passes
from ..engine.jit.walking import copy_tree


class ConverterStage(NamedTuple):
    """A converter's name, and the source before and after it."""

    name: str
    before: ast.AST
    after: ast.AST


def stages(function: Callable) -> list[ConverterStage]:
    """The tree before and after each converter.

    >>> from minipaddle.jit.stages import stages
    >>> from textwrap import dedent
    >>> [stage.name for stage in stages(dedent)][:3]
    ['signature', 'declarations', 'annotations']
    """
    function = getattr(function, "__func__", function)
    trees = [(name, copy_tree(tree)) for name, tree in passes(function, source_of(function))]
    return [ConverterStage(name, before, after) for (_, before), (name, after) in pairwise(trees)]
