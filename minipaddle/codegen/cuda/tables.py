"""Kernels that find the addresses of operands in memory.

So several kernels are one launch, and a captured graph reads inputs and writes outputs that lie
elsewhere in each call.
"""

from __future__ import annotations

import re

from ...engine.codegen.kernel import normalize_names
from .calls import Launch, Operand
from .text import FIRST, launch

SQUARE = (32, 8)
"""The threads of kernels that can be joined, 32 beside each other."""

PLACE = "(block * 8 + threadIdx.y) * 32 + threadIdx.x"
"""`FIRST` in such a kernel."""


def join_launches(name: str, calls: list[Launch]) -> Launch:
    """One kernel for calls that are `joinable`. Equal ones are written once; a row of a table has
    the addresses of the operands of each call.
    """
    equal: dict[str, list[Launch]] = {}
    for call in calls:
        equal.setdefault(normalize_names(call.source, call.name), []).append(call)
    lines = ["    unsigned block = blockIdx.x;"]
    for first, *others in equal.values():
        parameters, body = split_kernel(first.source)
        count, blocks, width = 1 + len(others), first.blocks[0], len(parameters)
        lines += [
            f"    if (block < {count * blocks}) {{",
            f"        table += block / {blocks} * {width};",
            f"        block %= {blocks};",
        ]
        for k, parameter in enumerate(parameters):
            kind, _, variable = parameter.rpartition("*")
            lines.append(f"        {kind}*{variable} = ({kind}*)table[{k}];")
        body = body.replace(FIRST, PLACE).replace("blockIdx.x", "block")
        lines += [*indent(body), "        return;", "    }"]
        lines.append(f"    block -= {count * blocks}, table += {count * width};")
    parts = tuple(call for same in equal.values() for call in same)
    blocks, memory = sum(call.blocks[0] for call in parts), [o for c in parts for o in c.given]
    helpers = dict.fromkeys(text for call in parts for text in call.helpers)
    how = (blocks, 1), SQUARE, memory, helpers
    return launch(name, ["void *const *table"], lines[:-1], *how)._replace(parts=parts)


def joinable(call) -> bool:
    """Whether a call is a kernel of one line of blocks of 256 threads: either 32 by 8 of them, or
    each for elements.
    """
    if not isinstance(call, Launch) or call.blocks[1] > 1:
        return False
    return call.threads == SQUARE or FIRST in call.source


def read_slots(name: str, call: Launch, slots: list[Operand | None]) -> Launch:
    """The kernel of `call`, which reads the addresses of those operands that have a slot there."""
    if call.parts:
        left = iter(slots)
        own = [(part, [next(left) for _ in part.given]) for part in call.parts]
        return join_launches(name, [read_slots(part.name, part, its) for part, its in own])
    parameters, body = split_kernel(call.source)
    pairs, lines = [*zip(parameters, slots, strict=True)], []
    for k, (parameter, at) in enumerate(pairs):
        if at is not None:
            kind, _, variable = parameter.rpartition("*")
            parameters[k] = f"{kind}*const *{variable}__at"
            lines.append(f"    {kind}*{variable} = *{variable}__at;")
    memory = [at or operand for operand, at in zip(call.given, slots, strict=True)]
    more = call.blocks, call.threads, memory, call.helpers
    return launch(name, parameters, [*lines, body], *more)


def split_kernel(source: str) -> tuple[list[str], str]:
    """The parameters of a kernel, and its body."""
    head, _, body = source.partition("\n{\n")
    _, parameters = re.fullmatch(r"(.*) \w+\((.*)\)", head).groups()
    return parameters.split(", "), body.removesuffix("\n}\n")


def indent(text: str) -> list[str]:
    """The lines of a text, four columns further right."""
    return [f"    {line}" for line in text.split("\n")]
