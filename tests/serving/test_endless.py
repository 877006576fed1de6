"""Models that never end and loads that never end, in a server as a process; and its token."""

import json
import os
import signal
import threading
from contextlib import suppress
from http.client import HTTPException
from urllib.error import HTTPError

import numpy as np
import pytest

from minipaddle.serving.command import main
from minipaddle.static import InputSpec

from .process import SAFETY, Process
from .serving import save, save_affine

LOOP = "/v2/models/loop/infer"


def grow(x):
    while x.sum() < 10.0:
        x = x + 1.0
    return x


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_affine(folder)
    save(grow, folder, "loop", 1, InputSpec([2], "float32", "x"))
    return folder


def ask(process, x) -> tuple[int, str]:
    """The answer of the loop to numbers that JSON may not have."""
    x = np.array(x, "float32").tobytes()
    head = {"name": "x", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}
    text = json.dumps({"inputs": [head]}).encode()
    try:
        headers = {"Inference-Header-Content-Length": str(len(text))}
        with process.open(LOOP, text + x, headers) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_the_rounds_of_loops_are_bounded(folder):
    process = Process(folder, "--rounds", "1000")
    status, text = ask(process, [-np.inf, 0])
    assert status == 400
    assert "the loops of the model go on after 1,000 iterations" in text
    assert json.loads(ask(process, [1, 2])[1])["outputs"][0]["data"] == [5, 6]
    assert process.end() == (0, "")


def test_a_run_that_does_not_end(folder):
    """It is answered, readiness says no, other models go on; and the process ends."""
    process = Process(folder, "--rounds", str(10**15), "--run-limit", "0.5", "--drain-limit", "1")
    assert process.get("/v2/health/ready") == 200
    found = []
    waiting = threading.Thread(target=lambda: found.append(ask(process, [1, 2])))
    first = threading.Thread(target=lambda: found.append(ask(process, [-np.inf, 0])))
    first.start()
    process.wait_until(lambda: process.get("/v2/health/ready") == 503)
    first.join()
    assert found[0][0] == 504
    assert "takes more than 0.5 s" in found[0][1]
    waiting.start()
    waiting.join()
    assert found[1][0] == 503
    assert process.get("/v2/health/live") == 200
    assert process.get("/v2/models/loop/ready") == 503
    assert process.get("/v2/models/affine/ready") == 200
    assert process.infer([1, 2]) == [3, 5]
    status, text = process.end()
    assert status == 1
    assert "the process ends, but a run does not" in text


def test_a_second_signal_ends_the_process_at_once(folder):
    process = Process(folder, "--rounds", str(10**15), "--drain-limit", "1000")

    def lose():
        with suppress(OSError, HTTPException):  # the process ends without an answer
            ask(process, [-np.inf, 0])

    asking = threading.Thread(target=lose)
    asking.start()
    ran = 'queue_seconds_count{model="loop",version="1"} 1.0'
    process.wait_until(lambda: ran in process.open("/metrics").read().decode())
    process.process.send_signal(signal.SIGINT)
    process.wait_until(lambda: process.get("/v2/health/live") is None)
    process.process.send_signal(signal.SIGINT)
    assert process.process.wait(SAFETY) == 1
    asking.join()
    process.end()


HUB = """
import time
from pathlib import Path
import minipaddle as paddle

def gpt(pretrained):
    while not Path({go!r}).exists():
        time.sleep(0.05)
    net = paddle.text.GPT(2, width=8, layers=1, heads=1, context=8)
    net.letters = "ab"
    return net

def leaves(pretrained):
    raise SystemExit("no weights")
"""


def test_text_models_load_while_the_server_lives(tmp_path, folder):
    """They are 503 until they are there; one that does not load leaves the others."""
    (tmp_path / "hubconf.py").write_text(HUB.format(go=str(tmp_path / "go")))
    options = [f"--text={name}={tmp_path}:{name}" for name in ("leaves", "gpt")]
    process = Process(folder, *options, ready=False)
    asked = lambda name: json.dumps({"model": name, "prompt": "ab", "max_tokens": 2}).encode()
    post = lambda name: process.get("/v1/completions", asked(name))
    assert process.get("/v2/health/live") == 200
    assert process.get("/v2/health/ready") == post("gpt") == 503
    assert post("none") == 404
    (tmp_path / "go").touch()
    process.wait_until(lambda: post("gpt") == 200)
    assert post("leaves") == 404
    assert process.get("/v2/health/ready") == 503
    assert process.infer([1, 2]) == [3, 5]
    status, text = process.end()
    assert status == 0
    assert "leaves was not loaded: it raised SystemExit('no weights')" in text


def test_a_text_without_a_place(folder, capsys):
    for text in ("gpt", "gpt=hub", "=hub:gpt", "gpt=:gpt", "gpt=hub:"):
        with pytest.raises(SystemExit):
            main([str(folder), "--text", text])
        assert f"{text} is not NAME=FOLDER:MODEL" in capsys.readouterr().err
    assert main([str(folder), "--text", "gpt=hub:a", "--text", "gpt=hub:b"]) == 2
    assert "--text or --reader with one name twice" in capsys.readouterr().err


def test_a_drain_ends_though_clients_do_not(folder):
    """Bodies that do not come; what was not answered is told so."""
    process = Process(folder, "--drain-limit", "0.5")
    slow = process.connect(b"POST /v2/models/affine/infer HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")
    assert process.infer([1, 2]) == [3, 5]
    process.process.send_signal(signal.SIGTERM)
    answer = slow.recv(2**16)
    assert b" 503 " in answer
    assert b"the server ends" in answer + slow.recv(2**16)
    process.process.wait(SAFETY)
    status, text = process.end()
    assert status == 0
    assert "timeout graceful shutdown exceeded" in text


DISK = """
import io, time
opened = io.open
def wait(path, *args, **kwargs):
    if str(path).endswith(("pipe/1/model.pdmodel", "options/config.json")):
        time.sleep(1000)
    return opened(path, *args, **kwargs)
io.open = __builtins__["open"] = wait
"""
"""A disk that does not answer for some files, as one on a network may not."""


def test_a_load_that_does_not_end(tmp_path, monkeypatch):
    """A disk does not answer. The others are served; meanwhile it is 503."""
    models, disk = tmp_path / "models", tmp_path / "disk"
    disk.mkdir()
    (disk / "sitecustomize.py").write_text(DISK)
    path = os.pathsep.join(filter(None, [str(disk), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)
    for name in ("affine", "pipe", "options"):
        save_affine(models, name)
    (models / "options/config.json").write_text("{}")
    process = Process(models, "--load-limit", "4", "--poll", "0.1", ready=False)
    infer = {name: f"/v2/models/{name}/infer" for name in ("affine", "pipe", "options", "none")}
    process.wait_until(lambda: process.get("/v2/models/affine/ready") == 200)
    assert process.infer([1, 2]) == [3, 5]
    assert process.get(infer["pipe"], b"{}") == process.get(infer["options"], b"{}") == 503
    assert process.get(infer["none"], b"{}") == 404
    assert process.get("/v2/health/ready") == 503
    assert process.get("/v2/health/live") == 200
    process.wait_until(lambda: process.get(infer["pipe"], b"{}") == 404)
    with process.open("/v2/repository/index", b"{}") as answer:
        found = {each["name"]: each for each in json.loads(answer.read())}
    assert found["pipe"]["reason"] == "it took more than 4 s"
    (models / "options/config.json").unlink()
    save_affine(models, "later")
    process.wait_until(lambda: process.get("/v2/models/later/ready") == 200)
    process.wait_until(lambda: process.get("/v2/models/options/ready") == 200)
    assert process.infer([1, 2]) == [3, 5]
    status, text = process.end()
    assert status == 0
    assert "pipe was not loaded: it took more than 4 s" in text


def test_the_token(folder, tmp_path):
    """All but health needs it; a child of the server does not inherit it."""
    process = Process(folder, "--control", ready=False, token="se-cret")
    process.wait_until(lambda: process.get("/v2/health/ready", headers={}) == 200)
    load = "/v2/repository/models/affine/load"
    for path, body in (("/v2", None), ("/metrics", None), (load, b""), ("/v2/health", None),
                       ("/v2/health/live/", None)):  # fmt: skip
        for headers in ({}, {"Authorization": "se-cret"}, {"Authorization": "Bearer se-cre"},
                        {"Authorization": "Basic se-cret"}):  # fmt: skip
            assert process.get(path, body, headers) == 401
    assert process.get("/v2/health/live", headers={}) == 200
    assert process.get("/v2") == process.get("/metrics") == process.get(load, b"") == 200
    assert process.get("/v2", headers={"Authorization": "bearer se-cret"}) == 200
    assert process.infer([1, 2]) == [3, 5]
    assert process.end() == (0, "")


@pytest.mark.parametrize("token", ["", " ", "two words", "é", "a\nb"])
def test_tokens_that_cannot_be_sent(folder, tmp_path, capsys, token, monkeypatch):
    file = tmp_path / "token"
    file.write_text(token, "utf-8")
    assert main([str(folder), "--token-file", str(file)]) == 2
    monkeypatch.setenv("MINIPADDLE_SERVE_TOKEN", token)
    assert main([str(folder)]) == 2
    assert capsys.readouterr().err.count("is empty, or has a letter that cannot be sent") == 2


def test_one_token(folder, tmp_path, capsys, monkeypatch):
    (tmp_path / "token").write_text("a\n")
    monkeypatch.setenv("MINIPADDLE_SERVE_TOKEN", "b")
    assert main([str(folder), "--token-file", str(tmp_path / "token")]) == 2
    assert main([str(folder), "--token-file", str(tmp_path / "nothing")]) == 2
    with pytest.raises(SystemExit):
        main([str(folder), "--token", "b"])
    text = capsys.readouterr().err
    assert "unrecognized arguments: --token b" in text
    assert "a token in MINIPADDLE_SERVE_TOKEN and in" in text
    assert "No such file" in text
