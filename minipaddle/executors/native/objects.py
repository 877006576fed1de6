"""Objects of kernels: a C file is compiled in parts, at the same time, and what an earlier program
has compiled is not compiled again.

The cache of compiled libraries has an object under the label of each unit
(`codegen.compile_units`). Units that are not there are compiled together, as many files at once as
programs have threads: a file takes 20 ms by itself. Their objects are then linked with those that
were there. `viz.first_step` shows what was compiled.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread, get_ident
from time import perf_counter
from typing import NamedTuple

from ...codegen.compile_units import ONCE_SIZE, SHARED_HEAD, Unit, file_of, rest_of, split_units
from ...engine.codegen.translation_unit import SourceFile
from ...engine.executors.compiler import Compiler, build, library_path, sum_of
from ...engine.executors.native import threads

LEAST, PART = 25_000, 10_000
"""Characters of kernels from which on a program is compiled in parts, and for which one more pays.
"""

SECTIONS = "-ffunction-sections", "-fdata-sections"
"""The linker leaves out functions that a program does not call, each with the table of its `switch`
in it: if the functions of a file shared one section of tables, one function would keep all, and the
program would lack what the others call."""

CALLS, PACKS = "-O0", "-O1"
"""A program's own functions are calls, and one may bring weights into their form. An optimizer's
time grows faster than the number of calls."""

CALL = 4
"""Characters of calls that take a compiler as long as one of a kernel."""


class ObjectFile(NamedTuple):
    """A file that was compiled: the names of its units, and its seconds. The last part are units
    that were `cached`, because an earlier program has compiled them.
    """

    names: list[str]
    seconds: float | None = None  # None: not measured apart
    cached: bool = False


def objects_of(source: SourceFile, cc: Compiler) -> list[Path]:
    """The objects of a program, to be linked; none if one file is faster. `source.parts` lists what
    is compiled.
    """
    source.parts, apart = [ObjectFile([*source.kernels.texts])], threads() > 1
    if size_of(source) < (LEAST if apart else 2 * LEAST):  # one processor gains only later
        return []
    units = split_units(source, apart)
    path_of = lambda key: library_path("".join((*SECTIONS, key)), cc).with_suffix(".o")
    sums = {label: sum_of(path_of(label)) for label in units}
    objects = {sums[label]: path_of(label) for label in units if sums[label]}  # each once
    missing = {label: unit for label, unit in units.items() if not sums[label]}
    files = {file_of([*share.values()]): share for share in shares(missing)}
    rest, effort = rest_of(source, units, apart), PACKS if source.kernels.functions else CALLS

    def compile_text(text: str) -> ObjectFile:
        began, path = perf_counter(), path_of(text)
        build(cc, text, path, (), *SECTIONS, *([effort] if text is rest else []))
        for label in files.get(text, ()):
            link(path, path_of(label))
        names = [unit.name for unit in files.get(text, {}).values()]
        return ObjectFile(names or ["calls of kernels"], perf_counter() - began)

    source.parts = run_at_once(compile_text, [*files, rest])
    known = [unit.name for label, unit in units.items() if sums[label]]
    source.parts += [ObjectFile(known, cached=True)] if known else []
    return [*objects.values(), *map(path_of, [*files, rest])]


def run_at_once(function: Callable, items: list) -> list:
    """The results of a function for each item, all computed at the same time. The threads are
    daemons: a process that ends does not wait for the compilers that they wait for.
    """
    results, errors = {}, []

    def work(k: int) -> None:
        try:
            results[k] = function(items[k])
        except Exception as error:
            errors.append(error)

    workers = [Thread(target=work, args=[k], daemon=True) for k in range(len(items))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    return [results[k] for k in range(len(items))]


def size_of(source: SourceFile) -> int:
    """How long a file takes to compile, in characters of kernels."""
    shared = sum(len(SHARED_HEAD.findall(text)) for text in source.helpers)
    calls = sum(map(len, source.functions)) // CALL
    return ONCE_SIZE * shared + sum(map(len, source.kernels.texts.values())) + calls


def shares(missing: dict[str, Unit]) -> list[dict[str, Unit]]:
    """Units as parts that take about equally long to compile."""
    size = sum(unit.size for unit in missing.values())
    parts = [{} for _ in range(min(threads(), -(-size // PART), len(missing)))]
    totals = [0] * len(parts)
    for label in sorted(missing, key=lambda label: -missing[label].size):
        least = totals.index(min(totals))
        parts[least][label] = missing[label]
        totals[least] += missing[label].size
    return parts


def link(path: Path, name: Path) -> None:
    """Give a file another name, where the file system can. A name that has a whole file keeps it:
    another program may be about to link that file for other units in it.
    """
    if name.exists() and not sum_of(name):
        name.unlink(missing_ok=True)
    try:
        name.hardlink_to(path)
    except FileExistsError:
        pass
    except OSError:
        own = name.with_suffix(f".{os.getpid()}-{get_ident()}")
        shutil.copyfile(path, own)
        own.chmod(0o644)
        own.replace(name)
