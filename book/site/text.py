"""Plain text and code as MyST Markdown."""

import html
import re
from textwrap import dedent


def prose(text: str) -> str:
    """Text that Markdown is to show as it is; what stands in `backticks` is code."""
    parts = re.split(r"(`[^`\n]+`)", text)
    return "".join(
        p if p[:1] == "`" else re.sub(r"([\\*_{}<>$|#~\[\]^])", r"\\\1", p) for p in parts
    )


def docstring(doc: str) -> str:
    """A docstring: paragraphs, indented formulas, examples."""
    shown = []
    for block in re.split(r"\n\s*\n", doc.strip("\n")):
        if block.lstrip().startswith(">>>"):
            shown.append(literal(block, lexer="pycon"))
        elif block.startswith("    "):
            shown.append(literal(dedent(block), lexer="text"))
        else:
            shown.append(prose(block) + "\n")
    return "\n".join(shown)


def literal(code: str, caption: str = "", lexer: str = "python") -> str:
    """A block of code under its caption."""
    head = f":caption: {caption}\n" if caption else ""
    return f"````{{code-block}} {lexer}\n{head}\n{code.rstrip()}\n````\n"


def fold(title: str, body: str) -> str:
    """What shows when its title is clicked."""
    return f"<details><summary>{html.escape(title)}</summary>\n\n{body}\n\n</details>\n"
