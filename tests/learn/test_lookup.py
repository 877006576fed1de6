"""Names may be abbreviated; what cannot be meant is answered with what is near."""

import pytest

from minipaddle.learn.lookup import UnknownError, find


@pytest.mark.parametrize(
    "text",
    [
        "01_first/double",
        "double",
        "dou",
        "oub",
        "01/d",
        "first/dou",
        "01_first/double.py",
        "exercises/01_first/double.py",
        "/home/me/exercises/01_first/double.py",
        "01_first\\double.py",
    ],
)
def test_an_abbreviation_is_understood(course, text):
    assert find(text) == "01_first/double"


def test_the_nearest_name_is_offered(course):
    with pytest.raises(UnknownError, match="no exercise 'dubble'; did you mean 01_first/double"):
        find("dubble")


def test_far_from_everything_the_list_is_offered(course):
    with pytest.raises(UnknownError, match=r"no exercise 'zzz'; `\./run learn` lists them"):
        find("zzz")


def test_what_may_be_several_is_asked_back(course):
    with pytest.raises(UnknownError, match="'o' may be 01_first/double or 02_second/slope"):
        find("o")
