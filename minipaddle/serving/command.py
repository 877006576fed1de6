"""`python -m minipaddle serve DIR`: the models of a folder behind HTTP (open inference protocol).

DIR has a folder for each model, in it one for each version (a number), in it what
`paddle.jit.save(net, "DIR/NAME/1/model", input_spec=[...])` writes. DIR/NAME/config.json may set
largest, window_ms, preferred, buckets, queue, workers and threads for one model.

--text NAME=FOLDER:MODEL adds a model that writes texts: MODEL of FOLDER/hubconf.py, with weights
and with `letters`. Clients of OpenAI's completions reach it at /v1.

examples:
  python -m minipaddle serve models
  python -m minipaddle serve models --port 9000 --largest 32 --window-ms 2 --poll 5
  python -m minipaddle serve models --text gpt=hub:char_gpt
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

from ..core.prelude import value_error
from .protocol import Limits

SWITCH = 5e-4
"""Seconds after which the event loop, when it is busy, lets a thread start the next batch."""
INSTALL = "serving needs Starlette, uvicorn and prometheus-client: pip install 'minipaddle[serve]'"


def parser() -> argparse.ArgumentParser:
    first, _, rest = __doc__.partition("\n")
    one = argparse.ArgumentParser(
        prog="python -m minipaddle serve", description=first.partition(": ")[2], epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    one.add_argument("folder", metavar="DIR", help="the folder of the models")
    one.add_argument("--host", default="127.0.0.1", help="the address (0.0.0.0: all of them)")
    one.add_argument("--port", type=int, default=8000, help="the port (0: any that is free)")
    one.add_argument("--largest", type=at_least(1), default=16, help="rows of a batch")
    one.add_argument(
        "--window-ms", type=float, default=0.0, help="how long requests wait for others"
    )
    one.add_argument("--queue", type=at_least(1), default=256, help="requests that may wait")
    one.add_argument("--workers", type=at_least(1), default=1, help="batches at the same time")
    one.add_argument("--threads", type=at_least(1), default=1, help="threads of each worker")
    one.add_argument("--poll", type=float, default=0.0, metavar="SECONDS",
                     help="how often to look for changed models (0: never)")  # fmt: skip
    one.add_argument("--control", action="store_true", help="let clients load and unload models")
    one.add_argument("--max-body", type=at_least(1), default=Limits().body, metavar="BYTES")
    one.add_argument("--max-elements", type=at_least(1), default=Limits().elements)
    one.add_argument("--connections", type=at_least(1), default=1024, help="most at the same time")
    one.add_argument("--drain", type=float, default=0.0, metavar="SECONDS",
                     help="how long to serve after SIGTERM, while readiness says no")  # fmt: skip
    one.add_argument("--text", action="append", default=[], metavar="NAME=FOLDER:MODEL",
                     help="a model that writes texts")  # fmt: skip
    one.add_argument("--slots", type=at_least(1), default=8, help="texts written at a time")
    return one


def writer_of(text: str, slots: int):
    """(name, writer) of a model that writes texts, as `--text` names it. Runs its hubconf.py."""
    from .. import hub
    from .completions import Writer

    name, _, place = text.partition("=")
    folder, _, model = place.rpartition(":")
    if not (name and folder and model):
        raise value_error(f"--text {text}", "NAME=FOLDER:MODEL")
    net = hub.load(folder, model, source="local", pretrained=True)
    if not hasattr(net, "letters"):
        raise value_error(f"{place} makes a {type(net).__name__} without letters", "a text model")
    return name, Writer(net, net.letters, slots)


def at_least(least: int):
    """What argparse reads a whole number with."""

    def number(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is no whole number from {least} on")
        return int(text)

    return number


def main(arguments=None) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status."""
    options = parser().parse_args(arguments)
    try:
        import uvicorn

        from .app import Server, Settings
        from .repository import Options
    except ImportError as error:
        print(f"error: {error}\n{INSTALL}", file=sys.stderr)
        return 2
    settings = Settings(
        Limits(options.max_body, options.max_elements),
        Options(options.largest, options.window_ms, queue=options.queue, workers=options.workers,
                threads=options.threads),
        options.poll, options.control,
    )  # fmt: skip
    try:
        texts = dict(writer_of(each, options.slots) for each in options.text)
        server = Server(options.folder, settings, texts)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2

    class Uvicorn(uvicorn.Server):
        """Says that it is not ready before it stops taking connections."""

        def handle_exit(self, sig, frame):
            if server.draining or not options.drain:
                super().handle_exit(sig, frame)
            server.draining = True
            loop.call_soon_threadsafe(
                loop.call_later, options.drain, super().handle_exit, sig, frame
            )

        async def startup(self, sockets=None):
            await super().startup(sockets)
            for each in self.servers:
                for socket in each.sockets:
                    host, port = socket.getsockname()[:2]
                    print(f"serving {options.folder} on http://{host}:{port}", flush=True)

    config = uvicorn.Config(
        server.app, options.host, options.port, log_level="error", access_log=False,
        limit_concurrency=options.connections,
    )  # fmt: skip
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn raises them again when it has ended
    sys.setswitchinterval(SWITCH)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(Uvicorn(config).serve())
    return 0
