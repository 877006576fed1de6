"""The models of a folder, `NAME/VERSION/model.pdmodel`: loaded, loaded again, unloaded.

`NAME/config.json` may set options of a model: those of `OPTIONS`. A version whose files changed is
loaded beside the old one, which answers meanwhile; then it takes the old one's place, and the old
one answers what it was given. If loading fails, the old one stays.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..core.prelude import value_error
from ..inference.config import Config
from ..inference.model import Model
from .batcher import Policy
from .metrics import Metrics, ModelMetrics
from .replica import ServedModel
from .runner import ModelRunner, Refused

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
VERSION = re.compile(r"[1-9][0-9]{0,8}")


def read_model(path: Path, threads: int) -> Model:
    """The model that `jit.save` wrote, compiled unless MINIPADDLE_BACKEND says otherwise."""
    return Model(str(path.with_suffix("")), backend=Config().backend(), threads=threads)


LOADERS: dict[str, Callable] = {"model.pdmodel": read_model}
"""By the name of a file in the folder of a version: what reads it, for a number of threads."""


class Options(NamedTuple):
    """How a model is served.

    largest: rows of a batch (1: requests run alone); window_ms: how long a request waits for
    others; preferred: rows with which a batch starts at once; buckets: batches that are compiled
    (by themselves, the powers of two); queue: requests that may wait; workers: batches at the same
    time; threads: of each
    """

    largest: int = 16
    window_ms: float = 0.0
    preferred: tuple[int, ...] = ()
    buckets: tuple[int, ...] = ()
    queue: int = 256
    workers: int = 1
    threads: int = 1

    @property
    def policy(self) -> Policy:
        return Policy(self.largest, self.window_ms / 1e3, self.preferred, self.queue)

    @property
    def compiled(self) -> tuple[int, ...]:
        """The batches that are compiled."""
        powers = [2**k for k in range(self.largest.bit_length()) if 2**k <= self.largest]
        return tuple(n for n in self.buckets if n <= self.largest) or (*powers, self.largest)


def read_options(path: Path, defaults: Options) -> Options:
    """The options of a model; ValueError if the file makes no sense."""
    if not path.exists():
        return defaults
    try:
        given = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise value_error(f"{path} is no JSON: {error!s:.80}") from None
    if not isinstance(given, dict):
        raise value_error(f"{path} holds {given!r:.60}", expected="an object")
    for name, value in given.items():
        check_option(path, name, value)
    return defaults._replace(**{k: tuple(v) if type(v) is list else v for k, v in given.items()})


def check_option(path: Path, name: str, value) -> None:
    """Raise ValueError for an option that does not exist, or a value that it cannot have."""
    if name not in Options._fields:
        raise value_error(f"{path} sets {name!r}", expected=f"one of {', '.join(Options._fields)}")
    kind = type(Options._field_defaults[name])
    whole = lambda n: type(n) is int and 1 <= n <= 2**20
    if kind is tuple:
        right, what = type(value) is list and all(map(whole, value)), "a list of whole numbers"
    elif kind is float:
        right, what = type(value) in (int, float) and 0 <= value <= 1e5, "milliseconds"
    else:
        right, what = whole(value), "a whole number, at least 1"
    if not right:
        raise value_error(f"{path} sets {name} to {value!r:.60}", expected=what)


class Loaded(NamedTuple):
    """A version that serves, and what its files were when it was read."""

    runner: ModelRunner
    stamp: tuple


class Repository:
    """The models of a folder. `load` and `unload` are called one at a time for each model."""

    def __init__(self, folder: str | Path, options: Options, metrics: Metrics):
        self.folder, self.options, self.metrics = Path(folder), options, metrics
        if not self.folder.is_dir():
            raise value_error(
                f"{self.folder} is no folder", expected="NAME/VERSION/model.pdmodel inside a folder"
            )
        self.models: dict[str, dict[int, Loaded]] = {}
        self.failed: dict[str, tuple[tuple, str]] = {}  # by name: what the files were, and why
        self.locks: dict[str, asyncio.Lock] = {}
        self.closing: set[asyncio.Task] = set()
        self.was_ready = False

    # ---- looking up --------------------------------------------------------------------------

    def get(self, name: str, version: str | None = None) -> tuple[int, ModelRunner]:
        """The number and the runner of a version, of the last one for None; Refused with 404 if
        there is none.
        """
        versions = self.models.get(name)
        if not versions:
            raise Refused(404, f"there is no model {name!r:.110}; there are {sorted(self.models)}")
        if version is None:
            number = max(versions)
        elif VERSION.fullmatch(version) and int(version) in versions:
            number = int(version)
        else:
            raise Refused(404, f"{name} has the versions {sorted(versions)}, not {version!r:.20}")
        return number, versions[number].runner

    def names(self) -> list[str]:
        """The models that the folder has now."""
        found = (path for path in self.folder.iterdir() if NAME.fullmatch(path.name))
        return sorted(path.name for path in found if path.is_dir())

    def ready(self) -> bool:
        """Whether each model of the folder was loaded once: one that is added later, and may be
        damaged, does not stop the others from being used.
        """
        if not self.was_ready and self.models:
            self.was_ready = all(name in self.models for name in self.names())
        return self.was_ready

    def index(self) -> list[dict]:
        """All models, with their states, as the protocol wants it."""
        found = []
        for name in sorted({*self.names(), *self.models}):
            for version in self.models.get(name, ()):
                found.append({"name": name, "version": str(version), "state": "READY"})
            if name in self.failed:
                found.append({"name": name, "state": "UNAVAILABLE", "reason": self.failed[name][1]})
        return found

    # ---- changing ----------------------------------------------------------------------------

    async def load(self, name: str, *, changed: bool = False) -> None:
        """Load a model; Refused if there is none, or its files are damaged. With `changed`, only
        the versions whose files changed.
        """
        if not NAME.fullmatch(name) or name not in self.names():
            raise Refused(404, f"there is no model {name!r:.110} in the folder")
        async with self.locks.setdefault(name, asyncio.Lock()):
            stamps = self.stamps(name)
            if changed and name in self.failed and self.failed[name][0] == tuple(stamps.items()):
                return
            old = self.models.get(name, {})
            new = {n: old[n] for n in stamps if changed and n in old and old[n].stamp == stamps[n]}
            try:
                if not stamps:
                    raise value_error(f"{name} has no version", expected="NAME/1/model.pdmodel")
                for number in stamps.keys() - new.keys():
                    new[number] = Loaded(await self.start(name, number), stamps[number])
            except Exception as error:  # whatever a file leads to, the server goes on
                self.failed[name] = tuple(stamps.items()), f"{error!s:.500}"
                self.metrics.loads.labels(name, "failed").inc()
                self.close(each for n, each in new.items() if old.get(n) is not each)
                raise Refused(400, f"{name} was not loaded: {error!s:.500}") from None
            self.failed.pop(name, None)
            self.models[name] = new
            self.metrics.loads.labels(name, "loaded").inc()
            self.close(each for n, each in old.items() if new.get(n) is not each)

    async def start(self, name: str, number: int) -> ModelRunner:
        """The runner of a version, ready."""
        options = read_options(self.folder / name / "config.json", self.options)
        served, replicas = await asyncio.to_thread(
            self.read, self.folder / name / str(number), options
        )
        metrics = ModelMetrics(self.metrics, name, str(number))
        runner = ModelRunner(served, options.policy, metrics, options.workers)
        runner.start(replicas)
        return runner

    def read(self, folder: Path, options: Options):
        """A served model and its replicas, compiled."""
        file = next(name for name in LOADERS if (folder / name).exists())
        model = LOADERS[file](folder / file, options.threads)
        served = ServedModel(model, largest=options.largest, buckets=options.compiled)
        replicas = [served.replica() for _ in range(options.workers)]
        served.warm_up(replicas[0])
        return served, replicas

    def stamps(self, name: str) -> dict[int, tuple]:
        """For each version of a model what changes when its files do."""
        found = {}
        for path in (self.folder / name).iterdir():
            if not VERSION.fullmatch(path.name) or not any((path / n).exists() for n in LOADERS):
                continue
            files = [*path.iterdir(), self.folder / name / "config.json"]
            stats = [(file.name, file.stat()) for file in sorted(files) if file.exists()]
            found[int(path.name)] = tuple((n, s.st_ino, s.st_size, s.st_mtime_ns) for n, s in stats)
        return found

    async def unload(self, name: str) -> None:
        """Serve a model no more; what it was given is answered."""
        async with self.locks.setdefault(name, asyncio.Lock()):
            if name not in self.models:
                raise Refused(404, f"there is no model {name!r:.110}")
            self.failed.pop(name, None)
            self.close(self.models.pop(name).values())

    def close(self, versions) -> None:
        """Close runners in the background."""
        for loaded in versions:
            task = asyncio.create_task(loaded.runner.close())
            self.closing.add(task)
            task.add_done_callback(self.closing.discard)

    async def refresh(self) -> None:
        """Load what changed in the folder, and unload what is gone."""
        for name in self.names():
            try:
                await self.load(name, changed=True)
            except Refused as error:
                print(error, flush=True)
        for name in self.models.keys() - {*self.names()}:
            await self.unload(name)

    async def drain(self) -> None:
        """Answer all that waits, and end."""
        for name in [*self.models]:
            await self.unload(name)
        while self.closing:
            await asyncio.gather(*self.closing)
