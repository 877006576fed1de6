"""The names that public programs use: they are here, with their keywords, or left out for a reason.

tests/data/used_names.json counts them over the sources of public repositories that import paddle.
"""

import inspect
import json
from importlib import import_module
from pathlib import Path

import pytest

from minipaddle.core.left_out import reason

DATA = Path(__file__).parents[1] / "data"
RECORD = json.loads((DATA / "used_names.json").read_text())
USED = RECORD["names"]


def find(name: str):
    """What an import or an attribute of this name gives in MiniPaddle; None if nothing."""
    parts = name.split(".")
    found = import_module("minipaddle")
    for k, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            try:
                import_module(".".join(["minipaddle", *parts[1:k]]))
            except ImportError:
                return None
        found = getattr(found, part, None)
    return found


def test_at_least_forty_repositories_were_read():
    assert len(set(RECORD["repositories"])) >= 40
    assert max(count for count, _ in USED.values()) <= len(RECORD["repositories"])


def test_every_name_is_here_or_left_out_for_a_reason():
    assert not [name for name in USED if find(name) is None and reason(name) is None]


def test_the_names_of_many_are_here():
    """Nothing but what later parts bring is left out of what every fourth repository uses."""
    often = [name for name, (count, _) in USED.items() if count >= len(RECORD["repositories"]) / 4]
    assert len(often) > 150
    missing = [name for name in often if find(name) is None]
    assert not [name for name in missing if "later part" not in reason(name)]


NOT_TAKEN = {"device", "requires_grad"}
"""Keywords that Paddle 3 took over from PyTorch: `place` and `stop_gradient` say the same."""


def test_keywords_that_programs_use_are_taken():
    refused = []
    for name, (_, keywords) in USED.items():
        function = find(name)
        if not callable(function) or not keywords:
            continue
        parameters = inspect.signature(function).parameters.values()
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            known = {p.name for p in parameters} | NOT_TAKEN
            refused += [(name, k) for k in keywords if k not in known]
    assert not refused


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("import minipaddle.fluid", "the interface of Paddle 1"),
        (
            "import minipaddle.distributed.rpc",
            "a later part of MiniPaddle: parameter servers",
        ),
    ],
)
def test_an_import_of_what_is_left_out_says_why(line, why):
    with pytest.raises(ImportError, match=why):
        exec(line)
