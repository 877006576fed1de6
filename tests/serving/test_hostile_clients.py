"""Clients that send nothing, or slowly, or do not read: over sockets, to a server as a process."""

import json
import select
import socket
import time

import numpy as np
import pytest

from minipaddle.serving.connections import HEAD, RESERVE
from minipaddle.static import InputSpec

from .process import Process
from .serving import body_of, save, save_affine

INFER = "/v2/models/affine/infer"
HEALTH = ("/v2/health/live", "/v2/health/ready")
SAFETY = 60
"""Seconds after which a test gives up."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_affine(folder)
    save(lambda x: x * 2, folder, "wide", 1, InputSpec([None, None], "float32", "x"))
    return folder


@pytest.fixture
def server(folder, request):
    process = Process(folder, *request.param)
    yield process
    status, text = process.end()
    assert (status, text) == (0, "")


def closed(connection) -> bool:
    """Whether the other side has closed a connection; what it sent before is read."""
    if not select.select([connection], [], [], 0)[0]:
        return False
    try:
        return connection.recv(2**16) == b""
    except ConnectionError:
        return True


def open_ones(connections) -> list:
    return [each for each in connections if not closed(each)]


def request(body: bytes, path=INFER) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize("server", [("--head-limit", "1", "--connections", "300")], indirect=True)
def test_heads_have_a_limit_of_time(server):
    """Those who send nothing, a part, a letter now and then, or a second head that never ends."""
    whole = request(body_of([1, 2]))
    beginnings = [b"", b"G", b"POST /v2 HTTP/1.1\r\nHost: a\r\n", b"GET /v2 HTTP/1.1\r\nX: "]
    connections = [server.connect(beginnings[k % 4]) for k in range(120)]
    after = [server.connect(whole + b"GET /v2 HT") for _ in range(8)]
    for connection in after:
        assert b" 200 " in connection.recv(2**16)
    deadline = time.monotonic() + SAFETY
    left = connections + after
    while left and time.monotonic() < deadline:
        assert server.infer([1, 2]) == [3, 5]
        assert [server.get(path) for path in HEALTH] == [200, 200]
        time.sleep(0.2)
        for k, connection in enumerate(connections):  # a letter now and then helps nobody
            if k % 4 == 3 and connection in left:
                try:
                    connection.send(b"a")
                except ConnectionError:
                    left.remove(connection)
        left = open_ones(left)
    assert not left


@pytest.mark.parametrize("server", [("--connections", "3")], indirect=True)
def test_health_answers_when_all_places_are_taken(server):
    """By clients whose bodies do not come. When they do, all are answered."""
    body = body_of([1, 2])
    slow = [server.connect(request(body)[:-5]) for _ in range(3)]
    deadline = time.monotonic() + SAFETY
    while server.get(INFER, body) != 503 and time.monotonic() < deadline:
        time.sleep(0.02)
    for _ in range(20):
        assert [server.get(path) for path in HEALTH] == [200, 200]
        assert server.get("/v2") == server.get("/metrics") == 503
    for connection in slow:
        connection.sendall(body[-5:])
        assert b" 200 " in connection.recv(2**16)
    assert server.infer([1, 2]) == [3, 5]


@pytest.mark.parametrize("server", [("--connections", "3", "--head-limit", "600")], indirect=True)
def test_idle_clients_make_room(server):
    """However many there are: the oldest go, and a new client is heard."""
    idle = [server.connect(b"GET /" if k % 2 else b"") for k in range(4 * RESERVE)]
    assert server.infer([1, 2]) == [3, 5]
    assert [server.get(path) for path in HEALTH] == [200, 200]
    left = open_ones(idle)
    assert 0 < len(left) <= RESERVE + 3
    assert left == idle[-len(left) :]


@pytest.mark.parametrize("server", [()], indirect=True)
def test_heads_have_a_limit_of_bytes(server):
    connection = server.connect(b"GET /v2 HTTP/1.1\r\n")
    for _ in range(HEAD // 1005 + 1):  # no more: what nobody reads would undo the answer
        connection.sendall(b"X: " + b"a" * 1000 + b"\r\n")
    answer = connection.recv(2**16)
    assert b" 400 " in answer
    assert b"more than 65536 bytes" in answer
    assert server.infer([1, 2]) == [3, 5]


@pytest.mark.parametrize("server", [("--head-limit", "1")], indirect=True)
def test_answers_that_nobody_reads(server):
    """Megabytes wait for a client that does not read them; its connection is closed."""
    x = np.zeros((1, 10**6), "float32").tobytes()
    head = {"name": "x", "shape": [1, 10**6], "datatype": "FP32",
            "parameters": {"binary_data_size": len(x)}}  # fmt: skip
    asked = {"inputs": [head], "parameters": {"binary_data_output": True}}
    text = json.dumps(asked).encode()
    lines = [
        "POST /v2/models/wide/infer HTTP/1.1", "Host: a", f"Content-Length: {len(text + x)}",
        f"Inference-Header-Content-Length: {len(text)}", "", "",
    ]  # fmt: skip
    connection = server.connect()
    connection.settimeout(SAFETY)
    whole = "\r\n".join(lines).encode() + text + x
    with pytest.raises(ConnectionError):  # at last the server does not read either
        connection.sendall(whole * 30)
    assert server.infer([1, 2]) == [3, 5]
    slow = server.connect(whole)
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
    found = 0
    while found < len(x):  # who reads slowly gets all of it
        time.sleep(0.05)
        found += len(slow.recv(10**5))
