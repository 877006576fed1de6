"""Models in folders, and a client of ASGI applications without sockets."""

import asyncio
import json
from types import SimpleNamespace

import numpy as np

import minipaddle as paddle
from minipaddle import nn
from minipaddle.serving.app import Server, Settings
from minipaddle.static import InputSpec


def save_affine(folder, name="affine", version=1, factor=2.0):
    """A model that computes factor · x + 1 of rows of two numbers."""
    net = nn.Linear(2, 2)
    net.weight.set_value(factor * np.eye(2, dtype="float32"))
    net.bias.set_value(np.ones(2, "float32"))
    save(net, folder, name, version, InputSpec([None, 2], "float32", "x"))


def save(net, folder, name, version, *specs):
    path = folder / name / str(version)
    path.mkdir(parents=True, exist_ok=True)
    paddle.jit.save(net, str(path / "model"), input_spec=[*specs])


def body_of(x, **more) -> bytes:
    """A request for one row, or some."""
    x = np.atleast_2d(np.asarray(x, "float32"))
    given = {"name": "x", "shape": [*x.shape], "datatype": "FP32", "data": x.tolist()}
    return json.dumps({"inputs": [given], **more}).encode()


async def call(app, method: str, path: str, body: bytes = b"", headers=(), chunks=None):
    """The answer of an ASGI application: status, headers, body; `chunks` are parts of a body."""
    parts = [body] if chunks is None else [*chunks]
    waiting = [
        {"type": "http.request", "body": part, "more_body": k < len(parts) - 1}
        for k, part in enumerate(parts)
    ]
    sent = []

    async def receive():
        if waiting:
            return waiting.pop(0)
        await asyncio.Event().wait()  # a client that stays

    async def send(message):
        sent.append(message)

    raw = [(k.lower().encode(), v.encode("latin-1")) for k, v in headers]
    target, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": target, "raw_path": target.encode(), "root_path": "",
        "query_string": query.encode(), "headers": raw, "client": ("test", 1),
        "server": ("test", 80),
    }  # fmt: skip
    await app(scope, receive, send)
    starts = [m for m in sent if m["type"] == "http.response.start"]
    assert len(starts) == 1, "a request is answered once"
    text = b"".join(m.get("body", b"") for m in sent[1:])
    head = {k.decode(): v.decode() for k, v in starts[0]["headers"]}
    return SimpleNamespace(status=starts[0]["status"], headers=head, body=text)


def infer(server, x, name="affine", **more):
    return call(server.app, "POST", f"/v2/models/{name}/infer", body_of(x, **more))


def values(answer) -> np.ndarray:
    """The first output of an answer in JSON."""
    assert answer.status == 200, answer.body
    (first, *_) = json.loads(answer.body)["outputs"]
    return np.array(first["data"]).reshape(first["shape"])


async def serving(folder, settings=None):
    """A server whose models are loaded."""
    server = Server(folder, settings or Settings())
    await server.repository.refresh()
    return server
