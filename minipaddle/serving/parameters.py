"""The parameters of requests: each object of JSON is read through a table of them.

A table gives each name a `RequestParameter`: what it takes, in words and as a test, and what holds
without it. So a value of the wrong type or range is refused wherever it stands, before anything is
computed with it. Whatever is wrong with a request raises `BadRequest` with a text for its author.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

MOST = 2**63 - 1
"""The largest whole number."""


class BadRequest(ValueError):
    """The fault of a request, for its author."""

    status = 400


class RequestParameter(NamedTuple):
    """what: what it takes, for an error; fits: whether a value is that; default: without it, or for
    null; neutral: the values, of those that fit, that are supported (None: all are)
    """

    what: str
    fits: Callable[[object], bool]
    default: object = None
    neutral: tuple | None = None


def whole(least: int, most: int = MOST, default: int | None = None) -> RequestParameter:
    """A whole number; true is none, and neither is 2.0."""
    fits = lambda x: type(x) is int and least <= x <= most
    end = f"to {most:,}" if most < MOST else "on"
    return RequestParameter(f"a whole number from {least:,} {end}", fits, default)


def number(least: float, most: float, default: float | None = None) -> RequestParameter:
    """A number of a range, whose ends are finite."""
    fits = lambda x: type(x) in (int, float) and least <= x <= most
    return RequestParameter(f"a number from {least:g} to {most:g}", fits, default)


def truth(default: bool = False) -> RequestParameter:
    return RequestParameter("true or false", lambda x: type(x) is bool, default)


def text(default: str | None = None) -> RequestParameter:
    return RequestParameter("a string", lambda x: type(x) is str, default)


def texts(most: int, longest: int, default=()) -> RequestParameter:
    """A string of a letter or more, or a list of such strings."""

    def fits(x) -> bool:
        listed = x if type(x) is list else [x]
        right = all(type(s) is str and 0 < len(s) <= longest for s in listed)
        return right and 0 < len(listed) <= most

    letters = f"of 1 to {longest:,} letters" if longest < MOST else "of a letter or more"
    return RequestParameter(f"a string {letters}, or a list of 1 to {most:,} such", fits, default)


def wholes(least: int, most: int, default=()) -> RequestParameter:
    """A list of whole numbers."""
    what, fits, *_ = whole(least, most)
    right = lambda x: type(x) is list and all(map(fits, x))
    return RequestParameter(f"a list, each of it {what}", right, default)


def mapping() -> RequestParameter:
    return RequestParameter("an object", lambda x: type(x) is dict, {})


def objects(default=()) -> RequestParameter:
    fits = lambda x: type(x) is list and all(type(each) is dict for each in x)
    return RequestParameter("a list of objects", fits, default)


def refuse(kind: RequestParameter, *neutral) -> RequestParameter:
    """A parameter that asks for something that is not there, unless it has one of these values."""
    return kind._replace(neutral=neutral)


def anything() -> RequestParameter:
    return RequestParameter("a value", lambda x: True)


def read(
    given: dict, table: dict[str, RequestParameter], where: str = "", *, closed: bool = True
) -> dict:
    """The values of all parameters of a table, as an object of JSON gives them. Raises BadRequest
    for one that is wrong; if the table is `closed`, also for one that it does not have.

    >>> from minipaddle.serving.parameters import read, truth, whole
    >>> read({"n": 2}, {"n": whole(1, 64, 1), "echo": truth()})
    {'n': 2, 'echo': False}
    >>> read({"n": 2.5}, {"n": whole(1, 64, 1)})
    Traceback (most recent call last):
    minipaddle.serving.parameters.BadRequest: `n` is 2.5, not a whole number from 1 to 64
    """
    of = f" of {where}" if where else ""
    for name in given if closed else ():
        if name not in table:
            raise BadRequest(
                f"there is no parameter {name!r:.60}{of}; there are {', '.join(table)}"
            )
    values = {}
    for name, (what, fits, default, neutral) in table.items():
        value = given.get(name)
        if value is None:
            value = default
        elif not fits(value):
            raise BadRequest(f"`{name}`{of} is {show(value)}, not {what}")
        elif neutral is not None and value not in neutral:
            raise BadRequest(f"`{name}`{of} is {show(value)}, which is not supported")
        values[name] = value
    return values


def show(value) -> str:
    """A value for an error: no longer than a line, whatever a client sent."""
    if type(value) in (list, dict):
        return "a list" if type(value) is list else "an object"
    return json.dumps(value[:40] if type(value) is str else value)[:60]


def parse(body: bytes, where: str = "the body") -> dict:
    """The object of JSON in a body, or a file. Raises BadRequest if there is none."""
    try:
        value = json.loads(body, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{where} is no JSON: {str(error) or 'nested too deeply':.100}") from None
    if not isinstance(value, dict):
        raise BadRequest(f"{where} is {show(value)}, not an object")
    return value


def refuse_constant(word: str):
    """NaN and Infinity, which Python would read."""
    raise ValueError(f"{word} is no JSON")
