"""Tests see kernels as the emitters' rules make them, whatever was tuned on this machine."""

import os

import pytest

os.environ.setdefault("MINIPADDLE_TUNED", "0")

UNMEASURED = {
    f"{folder}/{name}.py"
    for folder, files in {
        "codegen": "test_convolution test_cuda test_product test_special",
        "executors": """test_blocked test_cuda test_cuda_operators test_differential test_long
            test_native_operators test_strange""",
        "jit": "test_fuzz test_models",
        "passes": "test_models test_operators test_toggles",
        "static": "test_open_models test_open_operators",
    }.items()
    for name in files.split()
}
"""Every model and every operator, in every executor: measured, they take twice the time. That each
line is reached is seen from the tests of the parts."""


def pytest_configure(config):
    config.addinivalue_line("markers", "no_cover: pytest-cov does not measure it")


def pytest_collection_modifyitems(items):
    for item in items:
        if f"{item.path.parent.name}/{item.path.name}" in UNMEASURED:
            item.add_marker(pytest.mark.no_cover)
