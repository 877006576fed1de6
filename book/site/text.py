"""Code under its file, and text that unfolds, as MyST Markdown."""

import html


def literal(code: str, caption: str) -> str:
    """A block of Python code under its caption."""
    return f"````{{code-block}} python\n:caption: {caption}\n\n{code.rstrip()}\n````\n"


def fold(title: str, body: str) -> str:
    """What shows when its title is clicked."""
    return f"<details><summary>{html.escape(title)}</summary>\n\n{body}\n\n</details>\n"
