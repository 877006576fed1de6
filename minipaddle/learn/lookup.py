"""Which exercise is meant: names may be abbreviated."""

from __future__ import annotations

import difflib

from .exercise import names


class UnknownError(LookupError):
    """No exercise is called so, or several are; the message says which are near."""


def find(text: str) -> str:
    """The one exercise whose name `text` abbreviates.

    `accumulate`, `acc`, `02/acc`, `02_autograd/accumulate.py` and a path that ends so all name
    `02_autograd/accumulate`. Raises UnknownError.
    """
    everything = names()
    if members := chapter(text):
        inside = ", ".join(name.split("/")[1] for name in members)
        raise UnknownError(f"{text!r} is a chapter; name one of its exercises: {inside}")
    parts = text.strip().removesuffix(".py").replace("\\", "/").strip("/").split("/")[-2:]
    for fits in (exactly, by_beginning, by_part):
        found = [name for name in everything if fits(name, parts)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownError(
                f"{text!r} may be {' or '.join(found)}: please give more of the name"
            )
    raise UnknownError(f"there is no exercise {text!r}{nearest(parts[-1], everything)}")


def chapter(text: str) -> list[str]:
    """The exercises of the chapter that `text` names or begins: `05`, `05_conv`; else none."""
    text = text.strip().strip("/")
    fits = text and "/" not in text and text[0].isdigit()
    return [name for name in names() if fits and name.startswith(text)]


def find_all(texts: list[str]) -> list[str]:
    """The exercises that several words name: each an exercise, or all of a chapter."""
    return list(dict.fromkeys(name for t in texts for name in chapter(t) or [find(t)]))


def exactly(name: str, parts: list[str]) -> bool:
    return name.split("/")[-len(parts) :] == parts


def by_beginning(name: str, parts: list[str]) -> bool:
    """Does each part begin the part of the name that stands there?"""
    ends = name.split("/")[-len(parts) :]
    return all(full.startswith(part) for full, part in zip(ends, parts, strict=True))


def by_part(name: str, parts: list[str]) -> bool:
    return all(part in full for full, part in zip(name.split("/")[-len(parts) :], parts))


def nearest(text: str, everything: list[str]) -> str:
    """What to try instead: the nearest name, or where the names are."""
    short = {name.split("/")[-1]: name for name in everything}
    near = difflib.get_close_matches(text, short, 1, 0.5)
    return f"; did you mean {short[near[0]]}?" if near else "; `./run learn` lists them"
