"""10,000 hostile requests: each gets an answer that says what is wrong, and the server goes on."""

import asyncio
import json
import random
from collections import Counter

import numpy as np

from minipaddle.serving.app import Settings
from minipaddle.serving.protocol import JSON_LENGTH, Limits
from minipaddle.serving.repository import Options

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
        settings = Settings(Limits(body=4096, elements=64), Options(largest=4))
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
