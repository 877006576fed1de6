"""Tests see kernels as the emitters' rules make them, whatever was tuned on this machine; and
programs run on the interpreter unless a test, or the environment, asks for another backend.
"""

import gc
import os
import sys
import threading
from itertools import groupby
from pathlib import Path
from zlib import crc32

import pytest
from numpy._core._multiarray_umath import __cpu_features__

sys.modules.setdefault("rfc3987_syntax", None)  # two seconds of grammars that nbformat imports
os.environ.setdefault("MINIPADDLE_TUNED", "0")
os.environ.setdefault("MINIPADDLE_BACKEND", "interpreter")
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path.cwd() / ".pytest_cache/hypothesis"))
if __cpu_features__["AVX512F"]:  # PyTorch, an oracle, rounds and treats NaN as with AVX2
    os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
    os.environ.setdefault("MKL_ENABLE_INSTRUCTIONS", "AVX2")

gc.disable()  # until everything is collected: tests and modules live as long as the process


def pytest_addoption(parser):
    parser.addoption("--brief", action="store_true", help="run samples of sweeps")


def pytest_report_header():
    return f"processor: {os.environ.get('MINIPADDLE_PROCESSOR', 'native')}"


def pytest_collection_modifyitems(config, items):
    """`--brief` leaves of a test marked `sweep(one_in=8)` an eighth of its cases, at least one."""
    if config.option.brief:
        left_out = set(items) - set(samples(items))
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def samples(items):
    """All tests, of sweeps some cases; which ones depends on the test: no two keep the same."""
    cases = groupby(items, lambda item: item.nodeid.partition("[")[0])
    for test, group in ((test, [*group]) for test, group in cases):
        sweep = group[0].get_closest_marker("sweep")
        every = sweep.kwargs.get("one_in", len(group)) if sweep else 1
        yield from group[crc32(test.encode()) % min(every, len(group)) :: every]


def pytest_collection_finish():
    """No collection of garbage looks again at 700,000 objects that stay."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Run sweeps without the tracer: with it they take two to four times as long. That each line is
    reached is seen from other tests. (pytest-cov's own `no_cover` starts coverage anew, which wraps
    `os._exit` once more.)
    """
    if item.get_closest_marker("sweep") is None:
        return (yield)
    tracers = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracers[0])
        threading.settrace(tracers[1])


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    from tests.browsing import CHROMIUM, QUIET

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()
