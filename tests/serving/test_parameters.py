"""Tables of parameters: each kind takes its own values, and no others."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaddle.serving.parameters import (
    BadRequest,
    mapping,
    number,
    objects,
    parse,
    read,
    refuse,
    text,
    texts,
    truth,
    whole,
    wholes,
)

KINDS = {
    "whole": (whole(1, 64, 7), lambda x: type(x) is int and 1 <= x <= 64),
    "number": (number(-2, 2), lambda x: type(x) in (int, float) and -2 <= x <= 2),
    "truth": (truth(), lambda x: x is True or x is False),
    "text": (text("a"), lambda x: type(x) is str),
    "texts": (
        texts(2, 3),
        lambda x: (type(x) is str and 1 <= len(x) <= 3)
        or (type(x) is list and len(x) in (1, 2)
            and all(type(s) is str and 1 <= len(s) <= 3 for s in x)),
    ),
    "wholes": (wholes(0, 9), lambda x: type(x) is list and all(
        type(n) is int and 0 <= n <= 9 for n in x)),
    "mapping": (mapping(), lambda x: type(x) is dict),
    "objects": (objects(), lambda x: type(x) is list and all(type(d) is dict for d in x)),
    "nothing": (refuse(whole(0), 0), lambda x: type(x) is int and x == 0),
}  # fmt: skip
VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
)


@pytest.mark.parametrize("kind", KINDS)
@given(value=VALUES | st.integers(0, 9) | st.lists(st.integers(0, 9)) | st.just({}))
def test_a_kind_takes_its_values(kind, value):
    parameter, right = KINDS[kind]
    if right(value):
        assert read({"p": value}, {"p": parameter}) == {"p": value}
    else:
        with pytest.raises(BadRequest, match=r"^`p` is ") as caught:
            read({"p": value}, {"p": parameter})
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("kind", KINDS)
def test_null_is_the_default(kind):
    parameter = KINDS[kind][0]
    assert read({}, {"p": parameter}) == read({"p": None}, {"p": parameter})
    assert read({}, {"p": parameter})["p"] == parameter.default


def test_other_names():
    with pytest.raises(BadRequest, match="no parameter 'q' of x; there are p"):
        read({"q": 1}, {"p": truth()}, "x")
    assert read({"q": 1}, {"p": truth()}, closed=False) == {"p": False}


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"3", b"\xff", b'{"a": NaN}', b"[" * 10**5])
def test_bodies_that_hold_no_object(body):
    with pytest.raises(BadRequest, match=r"^the body is "):
        parse(body)


def test_a_body():
    assert parse(json.dumps({"a": [1]}).encode()) == {"a": [1]}
