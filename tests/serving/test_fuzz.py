"""Thousands of hostile requests: each gets an answer that says what is wrong, and the server goes
on.
"""

import asyncio
import http.client
import json
import random
from collections import Counter

import numpy as np

import minipaddle as paddle
from minipaddle.serving.app import Server, Settings
from minipaddle.serving.completions import PARAMETERS
from minipaddle.serving.protocol import JSON_LENGTH, RequestLimits
from minipaddle.serving.repository import ServingOptions
from minipaddle.serving.writer import TextWriter

from .process import Process
from .serving import call, infer, save_affine, serving, values

REQUESTS = 10_000
ANSWERS = {200, 400, 403, 404, 405, 413, 415, 504}
THINGS = [
    None, True, False, 0, -1, 1, 2, 2**31, 2**63, 10**400, 1.5, 1e400, float("nan"), "", "x",
    "FP32", "INT64", "\x00", "\ud800", "é" * 200,
    [], [[]], {}, [1, 2], [[1, 2]], [[1], [2, 3]], [None] * 9,
    {"binary_data_size": 8}, {"binary_data": True}, {"timeout": 1}, {"priority": 2**62},
]  # fmt: skip
PATHS = ["/v2/models/affine/infer"] * 12 + [
    "/v2/models/affine/versions/1/infer", "/v2/models/affine/versions/01/infer",
    "/v2/models/../infer", "/v2/models/%2e%2e/infer", "/v2/models/affine\x00/infer",
    "/v2/models/affine/versions/99999999999/infer", "/v2/repository/models/affine/load",
    "/v2/repository/index", "/metrics", "/v2/models//infer", "//", "/v2/models/" + "a" * 5000,
]  # fmt: skip


def good(random) -> tuple[bytes, dict, bytes]:
    """(bytes after the JSON, message, nothing): a request that is right."""
    rows = random.randint(1, 3)
    x = np.ones((rows, 2), "float32")
    given = {"name": "x", "shape": [rows, 2], "datatype": "FP32"}
    if random.random() < 0.5:
        return b"", {"inputs": [given | {"data": x.tolist()}]}
    given["parameters"] = {"binary_data_size": x.nbytes}
    return x.tobytes(), {"inputs": [given], "outputs": [{"name": "output_0"}]}


def mutated(random, value, depth=0):
    """A value with a part of it replaced, repeated, or gone."""
    if not isinstance(value, (dict, list)) or not value or random.random() < 0.15:
        return random.choice(THINGS)
    if isinstance(value, list):
        k = random.randrange(len(value))
        how = random.randrange(4)
        if how == 0:
            return [*value, value[k]]
        if how == 1:
            return value[:k] + value[k + 1 :]
        return [*value[:k], mutated(random, value[k]), *value[k + 1 :]]
    key = random.choice([*value])
    how = random.randrange(5)
    if how == 0:
        return {k: v for k, v in value.items() if k != key}
    if how == 1:
        names = ["data", "parameters", "outputs", "id", "shape", "name", "inputs", "x"]
        return value | {random.choice(names): random.choice(THINGS)}
    return value | {key: mutated(random, value[key])}


def hostile(random) -> tuple:
    """(method, path, headers, chunks) of a request."""
    after, message = good(random)
    for _ in range(random.randrange(4)):
        message = mutated(random, message)
    text = json.dumps(message).encode()
    how = random.random()
    if how < 0.1:
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.randbytes(random.randrange(9)) + text[at + random.randrange(3) :]
    elif how < 0.12:
        text = random.choice([b"[", b'{"inputs":', b'{"a":']) * random.randrange(3000)
    elif how < 0.14:
        after += random.randbytes(random.choice([1, 100, 5000]))
    headers = [("content-type", "application/json")]
    if after or random.random() < 0.1:
        length = str(len(text))
        if random.random() < 0.1:
            length = random.choice(["", "-1", "9" * 30, "1", "x", str(len(text) + 1), "0"])
        headers.append((JSON_LENGTH, length))
    if random.random() < 0.03:
        headers.append(("content-encoding", random.choice(["gzip", "br", "identity"])))
    if random.random() < 0.03:
        headers.append(("content-length", random.choice(["-5", "99999999", "x", "0"])))
    body = text + after
    cuts = sorted(random.randrange(len(body) + 1) for _ in range(random.randrange(3)))
    chunks = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)])]
    method = "POST" if random.random() < 0.97 else random.choice(["GET", "PUT", "DELETE", "HEAD"])
    return method, random.choice(PATHS), headers, chunks


def test_hostile_requests(tmp_path):
    save_affine(tmp_path)
    draw = random.Random(7)

    async def main():
        settings = Settings(RequestLimits(body=4096, elements=64), ServingOptions(largest=4))
        server = await serving(tmp_path, settings)
        statuses = Counter()

        async def one(k):
            method, path, headers, chunks = hostile(draw)
            answer = await call(server.app, method, path, headers=headers, chunks=chunks)
            assert answer.status in ANSWERS, (method, path, headers, chunks, answer.body)
            if answer.status == 400:
                assert json.loads(answer.body)["error"]
            elif answer.status == 200 and path.endswith("infer"):
                for each in json.loads(answer.body.split(b"}]}")[0] + b"}]}")["outputs"]:
                    assert each["shape"][1:] == [2]
            statuses[answer.status] += 1
            if k % 500 == 0:
                np.testing.assert_allclose(values(await infer(server, [k, 0])), [[2 * k + 1, 1]])

        for k in range(0, REQUESTS, 8):
            await asyncio.gather(*(one(k + i) for i in range(8)))
        assert sum(statuses.values()) == REQUESTS
        assert {200, 400, 404, 413} <= statuses.keys()
        assert statuses[200] > REQUESTS / 10  # many are nearly right
        assert statuses[400] > REQUESTS / 4
        assert len(server.repository.models["affine"][1].runner.batcher) == 0

    asyncio.run(main())


# ---- completions ---------------------------------------------------------------------------------

LETTERS = "abcd"
GPT = "paddle.text.GPT(4, width=8, layers=1, heads=1, context=12)"
NAMES = [*PARAMETERS, "prompt", "max_tokens", "messages", ""]
RIGHT = {
    "max_tokens": [1, 3, 11], "n": [1, 2, 5], "seed": [0, -3, 2**40], "temperature": [0, 1e-320, 9],
    "top_k": [1, 2**40], "top_p": [1e-9, 0.5, 1], "stop": ["a", ["b", "cc"]], "echo": [True],
    "stream": [True, False], "stream_options": [{"include_usage": True}, {}], "user": ["me"],
    "prompt": ["abc", ["a", "dcba"], "d" * 11], "best_of": [1], "logit_bias": [{}],
}  # fmt: skip


def completion(random) -> bytes:
    """A request for completions, of which some parameters are right and some are anything."""
    body = {"model": "gpt", "prompt": "ab", "max_tokens": 2}
    for _ in range(random.randrange(1, 4)):
        name = random.choice([*RIGHT])
        body[name] = random.choice(RIGHT[name])
    for _ in range(random.randrange(3)):
        body[random.choice(NAMES)] = random.choice(THINGS)
    if random.random() < 0.2:
        body = mutated(random, body)
    text = json.dumps(body).encode()
    if random.random() < 0.05:
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.randbytes(random.randrange(9)) + text[at + random.randrange(3) :]
    return text


def check_completion(status: int, text: str, asked: bytes) -> None:
    """Whether an answer is one that a client can read."""
    assert status == 200 or 400 <= status < 500, (asked, status, text)
    if status == 200 and text.startswith("data: "):
        *events, last = text.removesuffix("\n\n").split("\n\n")
        assert last == "data: [DONE]"
        found = [json.loads(each[6:]) for each in events]
        assert not any("error" in each for event in found for each in event["choices"]), asked
    elif status == 200:
        choices = json.loads(text)["choices"]
        assert {each["finish_reason"] for each in choices} <= {"length", "stop"}, asked
    else:
        assert json.loads(text)["error"]["message"]


def test_hostile_completions(tmp_path):
    draw = random.Random(3)
    paddle.seed(0)
    net = paddle.text.GPT(4, width=8, layers=1, heads=1, context=12)
    writer = TextWriter(net, LETTERS, slots=4, capacity=1000, backend="interpreter")
    right = json.dumps({"model": "gpt", "prompt": "ab", "max_tokens": 5, "temperature": 0}).encode()

    async def main():
        server = Server(tmp_path, Settings(RequestLimits(body=4096)), {"gpt": lambda: writer})
        await server.texts.load()
        post = lambda body: call(server.app, "POST", "/v1/completions", body)
        expected = json.loads((await post(right)).body)["choices"]
        statuses = Counter()

        async def one():
            asked = completion(draw)
            answer = await post(asked)
            check_completion(answer.status, answer.body.decode(), asked)
            statuses[answer.status] += 1

        for k in range(0, 3000, 4):
            await asyncio.gather(*(one() for _ in range(4)))
            if k % 500 == 0:
                assert json.loads((await post(right)).body)["choices"] == expected
        assert min(statuses[200], statuses[400]) > 500
        assert writer.open == 0

    asyncio.run(main())
    writer.close()


def test_hostile_requests_over_sockets(tmp_path):
    """To a server as a process: both protocols, on connections that stay open."""
    draw = random.Random(5)
    save_affine(tmp_path / "models")
    hub = f"import minipaddle as paddle\ndef gpt(pretrained=False):\n    net = {GPT}\n"
    (tmp_path / "hubconf.py").write_text(hub + f"    net.letters = {LETTERS!r}\n    return net\n")
    process = Process(
        tmp_path / "models", "--text", f"gpt={tmp_path}:gpt", "--max-elements", "64",
        "--max-body", "4096", "--control",
    )  # fmt: skip
    statuses = Counter()
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=60)
    for k in range(2000):
        if k % 2:
            method, path, headers, body = "POST", "/v1/completions", [], completion(draw)
        else:
            method, path, headers, chunks = hostile(draw)
            body = b"".join(chunks)
            headers = [each for each in headers if each[0] != "content-length"]
            if not path.isprintable() or "load" in path:
                path = draw.choice(["/v2/repository/index", "/v2/repository/models/affine/unload"])
                method, body = "POST", json.dumps({"ready": draw.choice(THINGS)}).encode()
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        if path == "/v1/completions":
            check_completion(answer.status, text, body)
        assert answer.status == 200 or 400 <= answer.status < 500, (path, body, text)
        statuses[answer.status] += 1
        if k % 200 == 0:
            assert process.infer([k, 0]) == [2 * k + 1, 1]
    connection.close()
    assert min(statuses[200], statuses[400], statuses[404]) > 50
    assert process.end() == (0, "")
