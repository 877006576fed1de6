"""`python -m minipaddle serve DIR`: the models of a folder behind HTTP (open inference protocol).

DIR has a folder for each model, in it one for each version (a number), in it what
`paddle.jit.save(net, "DIR/NAME/1/model", input_spec=[...])` writes. DIR/NAME/config.json may set
largest, window_ms, preferred, buckets, queue, workers, threads, rounds and run_limit for one model.

--text NAME=FOLDER:MODEL adds a model that writes texts: MODEL of FOLDER/hubconf.py, with weights
and with `letters`. Clients of OpenAI's completions reach it at /v1.

--reader NAME=FOLDER:MODEL adds a model that reads pictures: MODEL of FOLDER/hubconf.py gives its
finder, reader, turner and letters (`paddle.vision.ocr.TextSystem`). A picture is sent as it is:
curl -H 'Content-Type: image/png' --data-binary @page.png .../v2/models/NAME/infer

what is exposed: one port of one address, by itself 8000 of 127.0.0.1, which only this machine
reaches, as plain HTTP. A client that reaches it may call all of
  GET  /v2/health/live, /v2/health/ready            whether it lives, and is ready (no token)
  GET  /v2, /v2/models/NAME[/versions/N][/ready]    what there is
  POST /v2/models/NAME[/versions/N]/infer           run a model
  POST /v2/repository/index                         list the models, and why one failed
  GET  /metrics                                     counts for Prometheus, with the models' names
  GET  /v1/models, POST /v1/completions             write texts (only with --text)
and with --control also
  POST /v2/repository/models/NAME/load, .../unload  read a model of DIR again, or serve it no more
which lets anybody stop a model or keep the machine compiling, but neither choose another folder nor
send files.

A token is optional: MINIPADDLE_SERVE_TOKEN in the environment, or --token-file. Clients send it as
`Authorization: Bearer TOKEN`; all but the two health paths needs it then. Plain HTTP shows it to
those who can listen: put a proxy with TLS in front of an address that others reach.

examples:
  python -m minipaddle serve models
  python -m minipaddle serve models --port 9000 --largest 32 --window-ms 2 --poll 5
  python -m minipaddle serve models --text gpt=hub:char_gpt --reader page=hub:text_system
  python -m minipaddle serve models --host 0.0.0.0 --control --token-file /run/secrets/token
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import os
import re
import signal
import sys
from contextlib import suppress
from functools import partial
from inspect import signature
from pathlib import Path
from time import monotonic

from ..engine.core.errors import value_error
from .protocol import RequestLimits

SWITCH = 5e-4
"""Seconds after which the event loop, when it is busy, lets a thread start the next batch."""
SEEN = {"finder": [1, 3, None, None], "turner": [None, 3, 48, 192],
        "reader": [None, 3, 48, None]}  # fmt: skip
"""The shapes of what the networks of a reader of pictures see."""
TOKEN, VARIABLE = re.compile(r"[A-Za-z0-9._~+/-]+=*"), "MINIPADDLE_SERVE_TOKEN"
"""The form of a token (RFC 6750), and where it may stand. A command line has none: all users of
a machine can read it."""
FILES = 128
"""Files that the process opens besides connections."""
GRACE = 3.0
"""Seconds after the end of draining in which the process ends itself; then it is ended."""
DRAIN_LIMIT = 6.0
"""With GRACE less than the 10 seconds after which `docker stop` kills."""
INSTALL = "serving needs Starlette, uvicorn and prometheus-client: pip install 'minipaddle[serve]'"


def parser() -> argparse.ArgumentParser:
    first, _, rest = __doc__.partition("\n")
    one = argparse.ArgumentParser(
        prog="python -m minipaddle serve", description=first.partition(": ")[2], epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    add = one.add_argument
    add("folder", metavar="DIR", help="the folder of the models")
    add("--host", default="127.0.0.1", help="the address (0.0.0.0: all of them)")
    add("--port", type=int, default=8000, help="the port (0: any that is free)")
    add("--largest", type=at_least(1), default=16, help="rows of a batch")
    add("--window-ms", type=float, default=0.0, help="how long requests wait for others")
    add("--queue", type=at_least(1), default=256, help="requests that may wait")
    add("--workers", type=at_least(1), default=1, help="batches at the same time")
    add("--threads", type=at_least(1), default=1, help="threads of each worker")
    add("--rounds", type=at_least(1), default=2**20, help="iterations of all loops of a run")
    add("--control", action="store_true", help="let clients load and unload models")
    add("--token-file", metavar="FILE", help=f"the token that clients must send (or {VARIABLE})")
    add("--max-body", type=at_least(1), default=RequestLimits().body, metavar="BYTES")
    add("--max-elements", type=at_least(1), default=RequestLimits().elements)
    add("--connections", type=at_least(1), default=1024, help="requests at the same time")
    add("--text", action="append", default=[], metavar="NAME=FOLDER:MODEL", type=parse_text,
        help="a model that writes texts")  # fmt: skip
    add("--reader", action="append", default=[], metavar="NAME=FOLDER:MODEL", type=parse_text,
        help="a model that reads pictures")  # fmt: skip
    add("--slots", type=at_least(1), default=8, help="texts written at a time")
    for name, default, what in (
        ("poll", 0.0, "how often to look for changed models (0: never)"),
        ("head-limit", 10.0, "for the head of a request, then the connection is closed"),
        ("load-limit", 300.0, "for loading a model, then the old one stays"),
        ("run-limit", 60.0, "for a run; while one takes longer, readiness says no"),
        ("drain", 0.0, "how long to serve after SIGTERM, while readiness says no"),
        ("drain-limit", DRAIN_LIMIT, "for answering what waits after that, then the process ends"),
    ):
        add(f"--{name}", type=seconds, default=default, metavar="SECONDS", help=what)
    return one


def read_token(file: str | None) -> str | None:
    """The token that clients must send, of a file or of the environment, where it is removed, so
    that no child inherits it. Raises ValueError for a token that is empty or cannot be sent.
    """
    value, where = os.environ.pop(VARIABLE, None), VARIABLE
    if file is not None:
        if value is not None:
            raise value_error(f"a token in {VARIABLE} and in {file}", "one of them")
        value, where = Path(file).read_text("utf-8", errors="replace").strip(), file
    if value is not None and not TOKEN.fullmatch(value):
        raise value_error(
            f"the token in {where} is empty, or has a letter that cannot be sent",
            "letters, digits, - . _ ~ + /",
        )
    return value


def allow_connections(most: int) -> int:
    """Raise the limit of open files for a number of connections; return how many may be open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return most
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    wanted = most + FILES if hard == resource.RLIM_INFINITY else min(most + FILES, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        soft = max(soft, wanted)
    return max(1, min(most, soft - FILES))


def parse_text(text: str) -> tuple[str, str, str]:
    """The argparse type of NAME=FOLDER:MODEL."""
    name, _, path = text.partition("=")
    folder, _, model = path.rpartition(":")
    if not (name and folder and model):
        raise argparse.ArgumentTypeError(f"{text} is not NAME=FOLDER:MODEL")
    return name, folder, model


def load_model(folder: str, model: str):
    """A model of a folder, whose hubconf.py is run, with its weights."""
    from .. import hub

    make = hub.function_of(folder, model, "local", force_reload=False)
    return make(**{"pretrained": True} if "pretrained" in signature(make).parameters else {})


def writer_of(folder: str, model: str, slots: int, limit: float):
    """The writer of texts of a model."""
    from .writer import TextWriter

    net = load_model(folder, model)
    if not hasattr(net, "letters"):
        what = f"{folder}:{model} makes a {type(net).__name__} without letters"
        raise value_error(what, "a text model")
    return TextWriter(net, net.letters, slots, limit=limit)


def reader_of(folder: str, model: str, limit: float):
    """The reader of pictures of a model."""
    from ..ir.input_spec import InputSpec
    from ..jit import to_static
    from ..vision.ocr import TextSystem
    from .pictures import PictureReader

    parts = load_model(folder, model)
    if not hasattr(parts, "_asdict") or not {"finder", "reader", "letters"} <= {*parts._asdict()}:
        what = f"{folder}:{model} makes a {type(parts).__name__}"
        raise value_error(what, "a tuple with finder, reader, letters")
    named = parts._asdict()
    for name, shape in SEEN.items():
        if named.get(name) is not None:
            named[name] = to_static(named[name], input_spec=[InputSpec(shape, name=name)])
    options = named.pop("options", {})
    return PictureReader(TextSystem(**named, **options), limit=limit)


def seconds(text: str) -> float:
    """The argparse type of a time."""
    with suppress(ValueError):
        if 0 <= float(text) <= 1e6:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is no number of seconds, 0 or more")


def at_least(least: int):
    """The argparse type of a whole number."""

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
        from .connections import RESERVE, Connection
        from .repository import ServingOptions
    except ImportError as error:
        print(f"error: {error}\n{INSTALL}", file=sys.stderr)
        return 2
    served = ServingOptions(
        options.largest, options.window_ms, queue=options.queue, workers=options.workers,
        threads=options.threads, rounds=options.rounds, run_limit=options.run_limit,
    )  # fmt: skip
    try:
        token = read_token(options.token_file)
        wanted = options.connections + RESERVE
        if (most := allow_connections(wanted)) < wanted:
            print(f"note: few files may be open: {most} connections", file=sys.stderr, flush=True)
        settings = Settings(
            RequestLimits(options.max_body, options.max_elements), served, options.poll,
            options.control,
            load_limit=options.load_limit, requests=options.connections, token=token,
        )  # fmt: skip
        how = {"slots": options.slots, "limit": options.run_limit}
        texts = {name: partial(writer_of, *place, **how) for name, *place in options.text}
        readers = {name: partial(reader_of, *place, options.run_limit)
                   for name, *place in options.reader}  # fmt: skip
        if len(texts | readers) < len(options.text) + len(options.reader):
            raise value_error("--text or --reader with one name twice", "a name for each")
        server = Server(options.folder, settings, texts, readers)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2

    class Uvicorn(uvicorn.Server):
        """Says that it is not ready before it stops taking connections, and ends in any case."""

        def handle_exit(self, sig, frame):
            leave, again = partial(super().handle_exit, sig, frame), server.draining
            if not again:
                server.draining, left = True, options.drain + options.drain_limit
                server.ends = monotonic() + left
                faulthandler.dump_traceback_later(left + GRACE, exit=True)  # it says what hangs
            if again or not options.drain:
                leave()
            else:
                loop.call_soon_threadsafe(loop.call_later, options.drain, leave)

        async def startup(self, sockets=None):
            await super().startup(sockets)
            for each in self.servers:
                for socket in each.sockets:
                    host, port = socket.getsockname()[:2]
                    print(f"serving {options.folder} on http://{host}:{port}", flush=True)

    config = uvicorn.Config(
        server.app, options.host, options.port, log_level="error", access_log=False, ws="none",
        http=partial(Connection, limit=options.head_limit, most=max(1, most - RESERVE)),
        timeout_graceful_shutdown=options.drain_limit,
    )  # fmt: skip
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn raises them again when it has ended
    sys.setswitchinterval(SWITCH)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(Uvicorn(config).serve())
    faulthandler.cancel_dump_traceback_later()
    if not server.ended:  # threads of runs would keep the process for ever
        print("error: the process ends, but a run does not", file=sys.stderr, flush=True)
        os._exit(1)
    return 0
