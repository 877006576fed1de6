"""Plain text and docstrings as Markdown, which notebooks and the book's pages show."""

import re
from textwrap import dedent

KEPT = re.compile(r"(`[^`\n]+`|(?<![\w*])\*\w[^*\n`]*\w\*(?![\w*]))")  # `code` and *emphasis*


def prose(text: str) -> str:
    """Text that Markdown shows as it is, but for parts in `backticks` or *asterisks*."""
    escaped = [re.sub(r"([\\*_{}<>$|#~\[\]^])", r"\\\1", part) for part in KEPT.split(text)[::2]]
    kept = [*KEPT.findall(text), ""]
    return "".join(part for pair in zip(escaped, kept) for part in pair)


def docstring(doc: str) -> str:
    """A docstring: paragraphs, indented formulas, examples."""
    shown = []
    for block in re.split(r"\n\s*\n", doc.strip("\n")):
        if block.lstrip().startswith(">>>"):
            shown.append(fence(block, "pycon"))
        elif block.startswith("    "):
            shown.append(fence(dedent(block), "text"))
        else:
            shown.append(prose(block) + "\n")
    return "\n".join(shown)


def fence(code: str, language: str) -> str:
    """A block of code."""
    return f"````{language}\n{code.rstrip()}\n````\n"
