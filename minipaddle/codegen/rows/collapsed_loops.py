"""Several loops as one: a counter of all iterations, and the loop variables computed from it.

It knows names and extents; it knows neither nests nor threads.
"""

from __future__ import annotations


def digits(flat: str, sizes) -> list[str]:
    """The index along each axis of the element with number `flat`, in C: the inverse of
    row-major order."""
    texts, inner = [], 1
    for k, size in reversed(list(enumerate(sizes))):
        text = f"{flat} / {inner}" if inner > 1 else flat
        texts.insert(0, f"{text} % {size}" if k else text)
        inner *= size
    return texts


def flat_name(loops, name: str) -> str:
    """The variable that counts the iterations of all loops: a single loop's own, or `name`."""
    return loops[0].name if len(loops) == 1 else name


def declare_loops(T: str, flat: str, loops) -> list[str]:
    """A statement that computes the loop variables from `flat`; none for a single loop."""
    pairs = zip(loops, digits(flat, [a.extent for a in loops]), strict=True)
    values = ", ".join(f"{a.name} = {text}" for a, text in pairs)
    return [f"const {T} {values};"] if len(loops) > 1 else []


def count_from(first: str, loops) -> str:
    """Where a loop begins that counts its own variable and those of several loops: a division by a
    size that is no number in C takes longer than to count.
    """
    pairs = zip(loops, digits(first, [a.extent for a in loops]), strict=True)
    return ", ".join([first, *(f"{a.name} = {text}" for a, text in pairs)])


def count_on(loops) -> str:
    """A statement that counts these variables on by one iteration."""
    outer, *rest = loops
    text = f"{outer.name}++;"
    for a in rest:
        text = f"if (++{a.name} == {a.extent}) {{ {a.name} = 0; {text} }}"
    return text
