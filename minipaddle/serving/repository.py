"""The models of a folder, `NAME/VERSION/model.pdmodel`: loaded, loaded again, unloaded.

`NAME/config.json` may set options of a model: those of `OPTIONS`. A version whose files changed is
loaded beside the old one, which answers meanwhile; then it takes the old one's place, and the old
one answers what it was given. If loading fails, or takes too long, the old one stays, and so do all
others. Threads look at files and read them: the event loop waits for no disk.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..core.files import require_file
from ..engine.core.errors import value_error
from ..inference.config import Config
from ..inference.model import Model
from .batcher import BatchPolicy
from .loading import LOAD_LIMIT, being_loaded, beside, reason
from .metrics import Metrics, ModelMetrics
from .parameters import number, parse, read, whole, wholes
from .replica import ServedModel
from .runner import RUN_LIMIT, ModelRunner, Refused

ROUNDS = 2**20
"""Iterations that all loops of a model together may make in a run, unless told otherwise."""
LANES = 4
"""Models that are loaded side by side: one that hangs does not hold the others up."""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
VERSION = re.compile(r"[1-9][0-9]{0,8}")


def read_model(path: Path, threads: int, rounds: int | None = None) -> Model:
    """The model that `jit.save` wrote, compiled unless MINIPADDLE_BACKEND says otherwise. Its loops
    make at most `rounds` rounds in a run.
    """
    prefix, backend = str(path.with_suffix("")), Config().backend()
    return Model(prefix, backend=backend, threads=threads, rounds=rounds)


LOADERS: dict[str, Callable] = {"model.pdmodel": read_model}
"""By the name of a file in the folder of a version: what reads it, for a number of threads and of
rounds.
"""


class ServingOptions(NamedTuple):
    """How a model is served.

    largest: rows of a batch (1: requests run alone); window_ms: how long a request waits for
    others; preferred: rows with which a batch starts at once; buckets: batches that are compiled
    (by themselves, the powers of two); queue: requests that may wait; workers: batches at the same
    time; threads: of each; rounds: of all loops in a run; run_limit: seconds of a run
    """

    largest: int = 16
    window_ms: float = 0.0
    preferred: tuple[int, ...] = ()
    buckets: tuple[int, ...] = ()
    queue: int = 256
    workers: int = 1
    threads: int = 1
    rounds: int = ROUNDS
    run_limit: float = RUN_LIMIT

    @property
    def policy(self) -> BatchPolicy:
        return BatchPolicy(self.largest, self.window_ms / 1e3, self.preferred, self.queue)

    @property
    def compiled(self) -> tuple[int, ...]:
        """The batches that are compiled."""
        powers = [2**k for k in range(self.largest.bit_length()) if 2**k <= self.largest]
        return tuple(n for n in self.buckets if n <= self.largest) or (*powers, self.largest)


OPTIONS = {
    "largest": whole(1, 2**20), "window_ms": number(0, 1e5), "preferred": wholes(1, 2**20),
    "buckets": wholes(1, 2**20), "queue": whole(1, 2**20), "workers": whole(1, 1024),
    "threads": whole(1, 1024), "rounds": whole(1), "run_limit": number(0, 1e6),
}  # fmt: skip
"""The entries of config.json."""


def read_options(path: Path, defaults: ServingOptions) -> ServingOptions:
    """The options of a model; ValueError if the file makes no sense."""
    if not path.exists():
        return defaults
    require_file(str(path))
    options = read(parse(path.read_bytes(), str(path)), OPTIONS, str(path))
    said = {name: value for name, value in options.items() if value not in (None, ())}
    return defaults._replace(**{k: tuple(v) if type(v) is list else v for k, v in said.items()})


class LoadedVersion(NamedTuple):
    """A version that serves, and the stamps of its files when it was read."""

    runner: ModelRunner
    stamp: tuple


class Repository:
    """The models of a folder. `load` and `unload` are called one at a time for each model."""

    def __init__(
        self,
        folder: str | Path,
        options: ServingOptions,
        metrics: Metrics,
        limit: float = LOAD_LIMIT,
    ):
        self.folder, self.options, self.metrics = Path(folder), options, metrics
        self.limit = limit
        if not self.folder.is_dir():
            raise value_error(
                f"{self.folder} is no folder", expected="NAME/VERSION/model.pdmodel inside a folder"
            )
        self.models: dict[str, dict[int, LoadedVersion]] = {}
        self.failed: dict[str, tuple[tuple, str]] = {}  # by name: what the files were, and why
        self.present: list[str] | None = None  # what the folder had at the last look
        self.coming: set[str] = set()  # models that are loaded, or will be: nobody knows yet how
        self.locks: dict[str, asyncio.Lock] = {}
        self.closing: set[asyncio.Task] = set()
        self.was_ready = False

    # ---- looking up --------------------------------------------------------------------------

    def get(self, name: str, version: str | None = None) -> tuple[int, ModelRunner]:
        """The number and the runner of a version, of the last one for None; Refused with 404 if
        there is none.
        """
        versions = self.models.get(name, {})
        number = max(versions, default=None)
        if version is not None:
            number = int(version) if VERSION.fullmatch(version) else None
        if number in versions:
            return number, versions[number].runner
        if self.present is None or name in self.coming:
            raise being_loaded()
        if not versions:
            raise Refused(404, f"there is no model {name!r:.110}; there are {sorted(self.models)}")
        raise Refused(404, f"{name} has the versions {sorted(versions)}, not {version!r:.20}")

    def names(self) -> list[str]:
        """The models that the folder has now."""
        folders = (path for path in self.folder.iterdir() if NAME.fullmatch(path.name))
        return sorted(path.name for path in folders if path.is_dir())

    def ready(self) -> bool:
        """Whether each model of the folder was loaded once: one that is added later, and may be
        damaged, does not stop the others from being used. And whether all runs end.
        """
        if not self.was_ready and self.models and self.present is not None:
            self.was_ready = all(name in self.models for name in self.present)
        return self.was_ready and not any(runner.hanging for runner in self.runners())

    def runners(self) -> list[ModelRunner]:
        """Those of all versions of all models."""
        return [each.runner for versions in self.models.values() for each in versions.values()]

    def index(self) -> list[dict]:
        """All models, with their states, as the protocol wants it."""
        rows = []
        for name in sorted({*(self.present or ()), *self.models}):
            for version in self.models.get(name, ()):
                rows.append({"name": name, "version": str(version), "state": "READY"})
            if name in self.failed:
                rows.append({"name": name, "state": "UNAVAILABLE", "reason": self.failed[name][1]})
        return rows

    # ---- changing ----------------------------------------------------------------------------

    async def load(self, name: str, *, changed: bool = False) -> None:
        """Load a model; Refused if there is none, or its files are damaged. With `changed`, only
        the versions whose files changed.
        """
        if not NAME.fullmatch(name) or not await beside(self.limit, (self.folder / name).is_dir):
            raise Refused(404, f"there is no model {name!r:.110} in the folder")
        async with self.locks.setdefault(name, asyncio.Lock()):
            self.coming.add(name)
            try:
                await self.renew(name, changed)
            finally:
                self.coming.discard(name)

    async def renew(self, name: str, changed: bool) -> None:
        """See `load`; one at a time for each model."""
        stamps, old, new = {}, self.models.get(name, {}), {}
        try:
            async with asyncio.timeout(self.limit):
                stamps = await beside(self.limit, self.stamps, name)
                if changed and self.failed.get(name, [None])[0] == tuple(stamps.items()):
                    return
                if changed:
                    new = {n: old[n] for n in stamps if n in old and old[n].stamp == stamps[n]}
                if not stamps:
                    raise value_error(f"{name} has no version", expected="NAME/1/model.pdmodel")
                for number in stamps.keys() - new.keys():
                    new[number] = LoadedVersion(await self.start(name, number), stamps[number])
        except Exception as error:  # whatever a file leads to, the server goes on
            why = self.reason(error)
            self.failed[name] = tuple(stamps.items()), why
            self.metrics.loads.labels(name, "failed").inc()
            self.close(each for n, each in new.items() if old.get(n) is not each)
            raise Refused(400, f"{name} was not loaded: {why}") from None
        self.failed.pop(name, None)
        if new == old and name in self.models:
            return
        self.models[name] = new
        self.metrics.loads.labels(name, "loaded").inc()
        self.close(each for n, each in old.items() if new.get(n) is not each)

    def reason(self, error: Exception) -> str:
        """Why a load failed; the folder's path is no client's business."""
        return reason(error, self.limit).replace(f"{self.folder}/", "")[:500]

    async def start(self, name: str, number: int) -> ModelRunner:
        """The runner of a version, ready."""
        options, served, replicas = await beside(self.limit, self.read, name, number)
        metrics = ModelMetrics(self.metrics, name, str(number))
        runner = ModelRunner(served, options.policy, metrics, options.workers, options.run_limit)
        runner.start(replicas)
        return runner

    def read(self, name: str, number: int) -> tuple[ServingOptions, ServedModel, list]:
        """The options of a version, the served model and its replicas, compiled."""
        options = read_options(self.folder / name / "config.json", self.options)
        folder = self.folder / name / str(number)
        file = next((each for each in LOADERS if (folder / each).exists()), None)
        if file is None:
            raise FileNotFoundError(f"there is none of {', '.join(LOADERS)} in {folder}")
        model = LOADERS[file](folder / file, options.threads, options.rounds)
        served = ServedModel(model, largest=options.largest, buckets=options.compiled)
        replicas = [served.replica() for _ in range(options.workers)]
        served.warm_up(replicas[0])
        return options, served, replicas

    def stamps(self, name: str) -> dict[int, tuple]:
        """For each version of a model what changes when its files do."""
        table = {}
        for path in (self.folder / name).iterdir():
            if not VERSION.fullmatch(path.name) or not any((path / n).exists() for n in LOADERS):
                continue
            files = [*path.iterdir(), self.folder / name / "config.json"]
            stats = [(file.name, file.stat()) for file in sorted(files) if file.exists()]
            table[int(path.name)] = tuple((n, s.st_ino, s.st_size, s.st_mtime_ns) for n, s in stats)
        return table

    async def unload(self, name: str) -> None:
        """Serve a model no more; waiting requests are answered."""
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
        """Load what changed in the folder, and unload what is gone. Raises OSError or TimeoutError
        if nobody can look at the folder.
        """
        self.present = await beside(self.limit, self.names)
        self.coming |= {*self.present} - self.models.keys()
        lanes = asyncio.Semaphore(LANES)

        async def renew(name):
            async with lanes:
                try:
                    await self.load(name, changed=True)
                except Exception as error:
                    print(error, flush=True)
                finally:
                    self.coming.discard(name)

        await asyncio.gather(*map(renew, self.present))
        for name in self.models.keys() - {*self.present}:
            with suppress(Refused):  # a client has unloaded it meanwhile
                await self.unload(name)

    async def drain(self, limit: float | None = None) -> bool:
        """Answer all that waits, and end; False if some runs do not end within `seconds`."""
        for name in [*self.models]:
            await self.unload(name)
        if self.closing:
            await asyncio.wait({*self.closing}, timeout=limit)
        return not self.closing
