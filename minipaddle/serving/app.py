"""The server as a Starlette application: routes of the open inference protocol, version 2."""

import asyncio
import math
import threading
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..version import minipaddle as version
from . import pictures, protocol
from .answers import answering, run_off_loop
from .completions import Completions
from .gate import Gate
from .loading import LOAD_LIMIT, NamedModels
from .metrics import Metrics, ModelMetrics
from .parameters import mapping, parse, read, refuse, truth
from .pictures import PictureReader
from .protocol import JSON_LENGTH, RequestLimits
from .repository import Repository, ServingOptions
from .runner import ModelRunner, Refused
from .writer import TextWriter

TEXT = "text/plain; version=0.0.4; charset=utf-8"
LAST = 1.0
"""Seconds after the end of draining for runs that nobody waits for any more."""
JSON, BYTES = "application/json", "application/octet-stream"


class Settings(NamedTuple):
    """limits: of a body and its elements; options: of models without their own; poll: seconds
    between looks at the folder (0: never); control: whether clients may load and unload models;
    patience: seconds for a body to arrive; load_limit: seconds of a load; requests: most of them at
    the same time; token: what clients must show (None: nothing)
    """

    limits: RequestLimits = RequestLimits()
    options: ServingOptions = ServingOptions()
    poll: float = 0.0
    control: bool = False
    patience: float = 30.0
    load_limit: float = LOAD_LIMIT
    requests: int = 1024
    token: str | None = None


INDEX = {"ready": truth()}
LOAD = {"parameters": refuse(mapping(), {})}
UNLOAD = {"parameters": mapping()}
UNLOAD_PARAMETERS = {"unload_dependents": truth()}  # no model here depends on another


class Server:
    """A folder of models, and models that write texts or read pictures, behind HTTP: `texts` and
    `readers` have by name what makes each. `app` is an ASGI application.
    """

    def __init__(
        self, folder: str | Path, settings: Settings,
        texts: dict[str, Callable[[], TextWriter]] | None = None,
        readers: dict[str, Callable[[], PictureReader]] | None = None,
    ):  # fmt: skip
        self.settings, self.metrics = settings, Metrics()
        self.texts, self.readers = (
            NamedModels(each or {}, settings.load_limit) for each in (texts, readers)
        )
        self.counters = {name: ModelMetrics(self.metrics, name, "1") for name in readers or ()}
        self.repository = Repository(folder, settings.options, self.metrics, settings.load_limit)
        self.draining = False
        self.ends = math.inf  # when draining must be over, by the clock `monotonic`
        self.ended = False  # whether all that ran has ended
        model, at = "/v2/models/{name}", "/versions/{version}"
        routes = [
            Route("/v2/health/live", self.live),
            Route("/v2/health/ready", self.ready),
            *(Route(f"{path}/infer", answering(self.infer), methods=["POST"])
              for path in (model, model + at)),
            *(Route(f"{path}/ready", answering(self.model_ready)) for path in (model, model + at)),
            *(Route(path, answering(self.model)) for path in (model, model + at)),
            Route("/v2", self.server),
            Route("/metrics", self.scrape),
            Route("/v2/repository/index", answering(self.index), methods=["POST"]),
            Route("/v2/repository/models/{name}/load", answering(self.load), methods=["POST"]),
            Route("/v2/repository/models/{name}/unload", answering(self.unload), methods=["POST"]),
            *(Completions(self.texts, self.body).routes if texts else ()),
        ]  # fmt: skip
        ends = lambda: self.draining
        gate = Middleware(Gate, most=settings.requests, token=settings.token, ends=ends)
        self.app = Starlette(routes=routes, middleware=[gate], lifespan=self.lifespan)

    @asynccontextmanager
    async def lifespan(self, app):
        """Load the models while the server is live already; at the end, answer what waits."""
        loading = [
            asyncio.create_task(each)
            for each in (self.watch(), self.texts.load(), self.readers.load())
        ]
        yield
        self.draining = True
        for task in loading:
            task.cancel()
        await asyncio.wait(loading)
        left = lambda: min(max(0.0, self.ends + LAST - monotonic()), threading.TIMEOUT_MAX)
        self.ended = await self.repository.drain(left())
        for models in (self.texts, self.readers):
            self.ended &= await asyncio.to_thread(models.close, left)

    async def watch(self) -> None:
        """Load the models, and those that change."""
        while True:
            try:
                await self.repository.refresh()
            except Exception as error:  # whatever a look leads to, the next one is taken
                print(f"{type(error).__name__} in {self.repository.folder}: {error}", flush=True)
            if not self.settings.poll:
                return
            await asyncio.sleep(self.settings.poll)

    # ---- health and metadata -----------------------------------------------------------------

    async def live(self, request: Request) -> Response:
        return Response(status_code=200)

    async def ready(self, request: Request) -> Response:
        named = self.texts, self.readers
        alone = any(models.makers for models in named) and self.repository.present == []
        ready = (alone or self.repository.ready()) and all(models.ready() for models in named)
        ready = ready and not self.draining
        return Response(status_code=200 if ready else 503)

    async def server(self, request: Request) -> Response:
        extensions = ["model_repository", "binary_tensor_data"]
        return JSONResponse({"name": "minipaddle", "version": version, "extensions": extensions})

    async def scrape(self, request: Request) -> Response:
        return Response(self.metrics.text(), media_type=TEXT)

    async def model_ready(self, request: Request) -> Response:
        reader = self.reader_of(request)
        hangs = reader.hangs if reader else self.find(request)[1].hanging
        return Response(status_code=503 if hangs else 200)

    def reader_of(self, request: Request) -> PictureReader | None:
        """The model that reads pictures which a request is for; None if it is for another one."""
        name, version = request.path_params["name"], request.path_params.get("version", "1")
        return self.readers.get(name) if name in self.readers.makers and version == "1" else None

    async def model(self, request: Request) -> Response:
        name = request.path_params["name"]
        if self.reader_of(request):
            return JSONResponse(pictures.describe_pictures(name))
        _, runner = self.find(request)
        return JSONResponse({
            "name": name,
            "versions": [str(n) for n in sorted(self.repository.models[name])],
            "platform": runner.served.platform,
            "inputs": protocol.describe(runner.served.inputs),
            "outputs": protocol.describe(runner.served.outputs),
        })  # fmt: skip

    def find(self, request: Request) -> tuple[int, ModelRunner]:
        return self.repository.get(request.path_params["name"], request.path_params.get("version"))

    # ---- models come and go ------------------------------------------------------------------

    async def index(self, request: Request) -> Response:
        only_ready = read(await self.object(request), INDEX)["ready"]
        models = self.repository.index()
        return JSONResponse([x for x in models if x["state"] == "READY" or not only_ready])

    async def load(self, request: Request) -> Response:
        self.require_control()
        read(await self.object(request), LOAD)
        await self.repository.load(request.path_params["name"])
        return Response(status_code=200)

    async def unload(self, request: Request) -> Response:
        self.require_control()
        asked = read(await self.object(request), UNLOAD)
        read(asked["parameters"], UNLOAD_PARAMETERS)
        await self.repository.unload(request.path_params["name"])
        return Response(status_code=200)

    async def object(self, request: Request) -> dict:
        """The object of JSON in a body that may be left out."""
        body = await self.body(request)
        return parse(body) if body else {}

    def require_control(self) -> None:
        if not self.settings.control:
            raise Refused(403, "clients may not load models: start the server with --control")

    # ---- inference ---------------------------------------------------------------------------

    async def infer(self, request: Request) -> Response:
        began, status = monotonic(), 500
        reader = self.reader_of(request)
        runner = reader or self.find(request)[1]
        metrics = self.counters[request.path_params["name"]] if reader else runner.metrics
        try:
            runner.require_room()
            response = await (self.lines if reader else self.outputs)(request, runner)
            status = response.status_code
            return response
        except (ValueError, IndexError):
            status = 400
            raise
        except Refused as error:
            status = error.status
            raise
        except asyncio.CancelledError:
            status = 499
            raise
        finally:
            metrics.count(status)
            metrics.seconds.observe(monotonic() - began)

    async def lines(self, request: Request, reader: PictureReader) -> Response:
        """The lines of text in a picture."""
        body, media = await self.body(request), request.headers.get("content-type", "")
        asked, picture = await run_off_loop(
            len(body), pictures.read_picture, body, media, request.headers.get(JSON_LENGTH),
            self.settings.limits,
        )  # fmt: skip
        lines = await reader.read(picture)
        content = pictures.write_lines(request.path_params["name"], asked, lines)
        return Response(content, media_type=JSON)

    async def outputs(self, request: Request, runner: ModelRunner) -> Response:
        body, seen = await self.body(request), None
        while runner is not seen:  # another one, if it was loaded again meanwhile
            seen = runner
            served, length = runner.served, request.headers.get(JSON_LENGTH)
            asked = await run_off_loop(
                len(body), protocol.read_request, body, length, served.inputs, served.outputs,
                self.settings.limits,
            )  # fmt: skip
            number, runner = self.find(request)
        outputs = await runner.add(asked.arrays, asked.priority, asked.timeout)
        by_name = dict(zip(served.outputs, outputs, strict=True))
        wanted = [(each, by_name[each.name]) for each in asked.outputs]
        name = request.path_params["name"]
        content, length = await run_off_loop(
            sum([array.nbytes for _, array in wanted]),
            protocol.write_response, name, str(number), asked.id, wanted,
        )  # fmt: skip
        if length is None:
            return Response(content, media_type=JSON)
        return Response(content, media_type=BYTES, headers={JSON_LENGTH: str(length)})

    async def body(self, request: Request) -> bytes:
        """The body, as far as it is allowed to be."""
        if request.headers.get("content-encoding", "identity") != "identity":
            raise Refused(415, "the body is compressed; send it as it is")
        most = self.settings.limits.body
        too_large = Refused(413, f"the body has more than {most:,} bytes")
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > most:
            raise too_large
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self.settings.patience):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > most:
                        raise too_large
                    chunks.append(chunk)
        except TimeoutError:
            raise Refused(408, "the body did not arrive") from None
        except ClientDisconnect:
            raise Refused(400, "the client has gone") from None
        return b"".join(chunks)
