"""What is asked of the processor, where it is kept, and what follows for tiles of products."""

import json

import numpy as np
import pytest

from minipaddle.codegen import machine
from minipaddle.codegen.machine import Facts
from minipaddle.codegen.products import blas, microkernel
from minipaddle.engine.executors import compiler
from tests.codegen.compiling import programs_for
from tests.processors import processors

needs_cc = pytest.mark.skipif(compiler.compiler() is None, reason="no C compiler")


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder of its own for what is kept; nothing is asked before."""
    monkeypatch.setattr(machine, "cache_folder", lambda: tmp_path)
    machine.facts_here.cache_clear()
    yield tmp_path
    machine.facts_here.cache_clear()


def test_facts_are_kept_and_damaged_ones_asked_again(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(machine, "find_facts", lambda: asked.append(1) or Facts(32, 16, 1, 2, 3))
    first = machine.facts()
    (kept,) = folder.iterdir()
    known = first._asdict()
    older = json.dumps({field: known[field] for field in [*known][:-1]})  # before there were tiles
    for text in (None, "{", json.dumps({"vector": 0}), json.dumps({"other": 1}), "[]", older):
        machine.facts_here.cache_clear()
        if text is not None:
            kept.write_text(text)
        assert machine.facts() == first
    assert len(asked) == 6  # all but the second time, when the file was whole


def test_without_a_folder_facts_are_asked(monkeypatch):
    def nowhere():
        raise compiler.Unusable("no folder")

    monkeypatch.setattr(machine, "cache_folder", nowhere)
    machine.facts_here.cache_clear()
    assert machine.facts() == machine.find_facts()
    machine.facts_here.cache_clear()


def test_sizes_from_the_files_of_linux(tmp_path):
    rows = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2M")]
    for k, row in enumerate(rows):
        (tmp_path / f"index{k}").mkdir()
        for name, text in zip(("level", "type", "size"), row, strict=True):
            (tmp_path / f"index{k}" / name).write_text(text + "\n")
    assert machine.sizes_in_files(tmp_path) == (48 << 10, 2 << 20)
    assert machine.sizes_in_files(tmp_path / "index1") == ()


@needs_cc
def test_a_walk_visits_each_line(monkeypatch):
    met = []

    def walk(lines, steps):
        made = load(text).walk
        met.extend(made(lines, machine.ctypes.c_long(k)) for k in range(steps.value + 1))

    load, text = machine.load, machine.read_template("walk.c", machine.__file__)
    monkeypatch.setattr(machine, "STEPS", 64)
    machine.seconds_of_steps(walk, 64 * 64)
    assert sorted(met[:64]) == [*range(64)]
    assert met[64] == met[0] == 0
    sizes = machine.find_cache_sizes((1 << 13, 1 << 14))
    assert all(size in (1 << 13, 1 << 14) for size in sizes)


@needs_cc
@pytest.mark.skipif(not processors(), reason="processors have other names here")
def test_kernels_are_written_for_the_processor_that_is_named():
    for name in processors():
        with programs_for(name):
            known = machine.facts()
            assert f"-march={name}" in compiler.compiler().flags
            assert known[2:5] == machine.find_facts()[2:5]  # the caches are this one's
        with machine.target_processor(name):
            assert (known[:2], known[5:]) == (machine.facts()[:2], machine.facts()[5:])


@needs_cc
def test_tiles_are_used_where_the_system_permits_them(monkeypatch):
    monkeypatch.setattr(machine, "macros", lambda *_: {"__AVX512F__", "__AMX_TILE__"})
    for permitted in (True, False):
        monkeypatch.setattr(machine, "permits_tiles", lambda permitted=permitted: permitted)
        assert machine.instructions(compiler.compiler().processor)["amx"] is permitted
        assert machine.instructions("sapphirerapids")["amx"]  # text for another machine


@needs_cc
def test_what_a_processor_lacks_has_names():
    cc = compiler.compiler()
    assert machine.find_missing(cc, cc.processor, cc.processor) == []
    if machine.macros(cc, "x86-64-v4"):
        assert machine.find_missing(cc, "x86-64-v3", "x86-64-v4") == []
        names = {"AVX512BW", "AVX512CD", "AVX512DQ", "AVX512F", "AVX512VL"}
        missing = machine.find_missing(cc, "x86-64-v4", "x86-64-v3")
        assert names <= {*missing}  # newer gccs name more
    with pytest.raises(ValueError, match="no processor is called 'z80'"):
        machine.find_missing(cc, "z80")


@pytest.mark.parametrize("known", [Facts(), Facts(32, 16), Facts(64, 32), Facts(16, 32)])
def test_tiles_fit_the_registers(known, monkeypatch):
    monkeypatch.setattr(microkernel, "facts", lambda: known)
    lanes = known.vector // 4
    for rows in range(1, 12):
        for columns in (1, lanes, 2 * lanes, 3 * lanes, 100, 1024):
            t = microkernel.fit_tile(rows, columns, "float")
            across, high = t.across or microkernel.ACROSS, min(t.tall, known.registers // 4)
            assert across == 2 or high * across + across + 2 <= known.registers
    wide = microkernel.fit_tile(8, 4 * 3 * lanes, "float")
    assert wide.across == (3 if known.registers == 32 else 0)


def test_the_core_of_blas_is_named():
    assert isinstance(blas.core(), str)
    config = np.show_config("dicts")["Build Dependencies"]["blas"]["name"]
    assert bool(blas.core()) == ("scipy-openblas" in config)


@pytest.mark.parametrize(
    ("core", "who"),
    [
        ("SkylakeX", "by OpenBLAS on one thread, with kernels for SkylakeX"),
        ("Haswell", "by kernels written here; OpenBLAS has Haswell's"),
        ("", "no OpenBLAS"),
    ],
)
def test_the_report_says_who_computes_large_products(core, who, monkeypatch):
    monkeypatch.setattr(blas, "core", lambda: core)
    monkeypatch.setattr(blas, "facts", lambda: Facts(64, 32, 1 << 15, 1 << 20, 1 << 25))
    found = blas.report()
    assert found.startswith("32 vectors of 64 bytes, caches of 32, 1,024, 32,768 KiB; ")
    assert who in found
