"""A test that fails leaves no server behind: its warning would fail another test."""

import pytest

from .process import running


@pytest.fixture(autouse=True, scope="module")
def end_servers():
    yield
    for process in [*running]:
        process.end()
