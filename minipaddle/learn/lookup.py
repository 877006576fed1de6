"""Find an exercise by its name, which may be abbreviated."""

import difflib

from .exercise import names


class UnknownError(LookupError):
    """No exercise has the name, or several match it; the message says which are near."""


def find(text: str) -> str:
    """The one exercise whose name `text` abbreviates.

    `accumulate`, `acc`, `02/acc`, `02_autograd/accumulate.py` and any path with this end name
    `02_autograd/accumulate`. Raises UnknownError.
    """
    everything = names()
    if members := chapter(text):
        inside = ", ".join(name.split("/")[1] for name in members)
        raise UnknownError(f"{text!r} is a chapter; name one of its exercises: {inside}")
    parts = text.strip().removesuffix(".py").replace("\\", "/").strip("/").split("/")[-2:]
    for fits in (str.__eq__, str.startswith, str.__contains__):  # from the strictest on
        matches = [
            name for name in everything
            if all(map(fits, name.split("/")[-len(parts) :], parts))
        ]  # fmt: skip
        if len(matches) == 1:
            return matches[0]
        if matches:
            either = " or ".join(matches)
            raise UnknownError(f"{text!r} may be {either}: please give more of the name")
    raise UnknownError(f"there is no exercise {text!r}{suggestion(parts[-1], everything)}")


def chapter(text: str) -> list[str]:
    """The exercises of the chapter that `text` names or abbreviates (`05`, `05_conv`), or none."""
    text = text.strip().strip("/")
    fits = text and "/" not in text and text[0].isdigit()
    return [name for name in names() if fits and name.startswith(text)]


def find_all(texts: list[str]) -> list[str]:
    """The exercises that several words name, each an exercise or a whole chapter."""
    return list(dict.fromkeys(name for t in texts for name in chapter(t) or [find(t)]))


def suggestion(text: str, everything: list[str]) -> str:
    """The nearest name, or how to list the names."""
    short = {name.split("/")[-1]: name for name in everything}
    near = difflib.get_close_matches(text, short, 1, 0.5)
    return f"; did you mean {short[near[0]]}?" if near else "; `./run learn` lists them"
