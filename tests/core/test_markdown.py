"""Text as Markdown: it shows as it is, but for code and emphasis."""

import pytest

from minipaddle.core.markdown import docstring, prose


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2*x*y, *args and **kwargs", r"2\*x\*y, \*args and \*\*kwargs"),
        ("once for each *stage of a row*.", "once for each *stage of a row*."),
        ("`a_b[*]` of a_b[0]", r"`a_b[*]` of a\_b\[0\]"),
        ("`a", "`a"),
    ],
)
def test_code_and_emphasis_are_kept_all_else_is_text(text, shown):
    assert prose(text) == shown


def test_a_docstring_has_paragraphs_formulas_and_examples():
    assert docstring("A *word*.\n\n    y = x_1\n      + 2\n\n>>> 1 + 1\n2") == (
        "A *word*.\n\n````text\ny = x_1\n  + 2\n````\n" + "\n````pycon\n>>> 1 + 1\n2\n````\n"
    )
