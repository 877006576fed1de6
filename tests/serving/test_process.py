"""The command as a process: sockets, real clients, signals."""

import re
import signal
import socket
import threading
import time

import numpy as np
import pytest

from minipaddle.serving.command import main

from .process import Process
from .serving import save_affine


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_affine(folder)
    return folder


@pytest.fixture(scope="module")
def process(folder):
    process = Process(folder, "--control", "--max-body", "5000")
    yield process
    status, text = process.end()
    assert (status, text) == (0, "")


def test_a_request_as_curl_sends_it(process):
    assert process.infer([1, 2]) == [3, 5]


def test_tritonclient(process):
    """NVIDIA's client: metadata, numbers as JSON and as bytes, errors, models that come and go."""
    client_of = pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
    client = client_of.InferenceServerClient(f"127.0.0.1:{process.port}")
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("affine")
    assert not client.is_model_ready("other")
    assert client.get_server_metadata()["name"] == "minipaddle"
    assert client.get_model_metadata("affine", "1")["outputs"][0]["datatype"] == "FP32"
    x = np.array([[1, 2], [3, 4]], "float32")
    for sent in (True, False):
        given = client_of.InferInput("x", x.shape, "FP32")
        given.set_data_from_numpy(x, binary_data=sent)
        for received in (True, False):
            wanted = client_of.InferRequestedOutput("output_0", binary_data=received)
            found = client.infer(
                "affine", [given], outputs=[wanted], request_id="7", priority=1, timeout=10**7
            )
            np.testing.assert_allclose(found.as_numpy("output_0"), 2 * x + 1)
            assert found.get_response()["id"] == "7"
        np.testing.assert_allclose(client.infer("affine", [given]).as_numpy("output_0"), 2 * x + 1)
    wrong = client_of.InferInput("x", [1, 3], "FP32")
    wrong.set_data_from_numpy(np.zeros((1, 3), "float32"))
    with pytest.raises(Exception, match=r"it takes \[-1, 2\]"):
        client.infer("affine", [wrong])
    client.unload_model("affine")
    assert not client.is_model_ready("affine")
    client.load_model("affine")
    assert client.is_model_ready("affine")
    assert client.get_model_repository_index()[0]["state"] == "READY"
    client.close()


def test_bytes_that_are_no_http(process):
    random = np.random.default_rng(0)
    for k in range(50):
        with socket.create_connection(("127.0.0.1", process.port), timeout=10) as connection:
            head = b"POST /v2/models/affine/infer HTTP/1.1\r\nHost: a\r\n" if k % 2 else b""
            connection.sendall(head + random.bytes(200))
    with socket.create_connection(("127.0.0.1", process.port), timeout=10) as connection:
        connection.sendall(
            b"POST /v2/models/affine/infer HTTP/1.1\r\nHost: a\r\n"
            + b"Transfer-Encoding: chunked\r\n\r\n"
            + (b"400\r\n" + b" " * 1024 + b"\r\n") * 6
        )
        assert b" 413 " in connection.recv(100)
    assert process.infer([1, 2]) == [3, 5]


def test_the_address_need_not_be_what_a_server_prints_first(folder):
    """As a text model does that fails to load while the server starts."""
    process = Process(folder, "--connections", str(10**12))
    assert process.infer([1, 2]) == [3, 5]
    status, text = process.end()
    assert status == 0
    assert re.fullmatch(r"note: few files may be open: \d+ connections\n", text)


def test_a_server_without_an_address_says_why(tmp_path):
    with pytest.raises(AssertionError, match=r"(?s)no address, exit status 2:.*error: "):
        Process(tmp_path / "nothing")


def test_sigterm_answers_what_waits(folder):
    """Requests wait in the window when the signal comes; while it drains, readiness says no."""
    process = Process(folder, "--window-ms", "700", "--drain", "0.4")
    found = {}
    threads = [
        threading.Thread(target=lambda k=k: found.update({k: process.infer([k, 0])[0]}))
        for k in range(4)
    ]
    for thread in threads:
        thread.start()
    while True:
        with process.open("/metrics") as answer:
            text = answer.read().decode()
        if 'queue_requests{model="affine",version="1"} 4.0' in text:
            break
    process.process.send_signal(signal.SIGTERM)
    time.sleep(0.15)
    assert process.get("/v2/health/ready") == 503
    assert process.get("/v2/health/live") == 200
    status, text = process.end()
    for thread in threads:
        thread.join()
    assert found == {k: 2 * k + 1 for k in range(4)}
    assert (status, text) == (0, "")
    assert process.get("/v2/health/live") is None


def test_mistakes_on_the_command_line(tmp_path, capsys):
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "is no folder" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--queue", "0"])
    assert "no whole number from 1 on" in capsys.readouterr().err
