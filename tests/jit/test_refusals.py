"""The index of refusals names the place of an error that a user sees."""

import re

import pytest

import minipaddle as paddle
from minipaddle.engine.jit.refusal import Dygraph2StaticException

from .refusals import PACKAGE, index, main


def test_an_error_is_found_by_its_words(capsys):
    @paddle.jit.to_static
    def f(x):
        if x.sum() > 0:
            y = x
        return y

    with pytest.raises(Dygraph2StaticException) as caught:
        f(paddle.zeros([2]))
    said = " ".join(str(caught.value).split())
    found = [r for r in index() if re.match(re.escape(r.message).replace("…", ".*"), said)]
    assert [r.where.partition(":")[0] for r in found] == ["minipaddle/engine/jit/writing.py"]
    main(["undefined", "here"])
    assert found[0].where in capsys.readouterr().out


def test_each_line_is_where_the_index_says():
    refusals = index()
    assert len(refusals) > 25
    for refusal in refusals:
        name, _, line = refusal.where.partition(":")
        text = (PACKAGE.parent / name).read_text(encoding="utf-8").splitlines()
        assert re.search(r"refus|supported", text[int(line) - 1]), refusal
