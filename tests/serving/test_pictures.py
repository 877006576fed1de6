"""Pictures over HTTP: what a client gets is what `TextSystem` reads alone."""

import asyncio
import io
import json
import time
from functools import partial, wraps

import numpy as np
import pytest
from PIL import Image

import minipaddle as paddle
from minipaddle.serving.app import Server, Settings
from minipaddle.serving.pictures import PictureReader
from minipaddle.serving.protocol import RequestLimits
from minipaddle.vision.ocr import TextSystem

from .serving import call

CALLS = []


def find_white(x):
    """White is text."""
    return (x[:, :1] > 0).astype("float32")


def read_by_width(x):
    """As many letters as a line's whites are wide, by 16; whether lines came together is noted."""
    CALLS.append(x.shape[0])
    widths = (x[:, 0, 24] > 0.5).astype("int64").sum(-1) // 16
    counts = [int(n) for n in widths]
    paths = np.zeros((len(counts), 80), "int64")
    for path, n in zip(paths, counts, strict=True):
        path[1 : 2 * n : 2] = 1
    return paddle.nn.functional.one_hot(paddle.to_tensor(paths), 2)


def page(*widths):
    """Bars of white on black, one below the other."""
    picture = np.zeros((64 * max(len(widths), 1), 320, 3), "uint8")
    for k, width in enumerate(widths):
        picture[64 * k + 20 : 64 * k + 40, 20 : 20 + width] = 255
    return picture


def system():
    return TextSystem(find_white, read_by_width, "a", side=64, least_score=0.0)


def as_png(picture) -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return file.getvalue()


def served(test):
    """A test with a client of a server that reads pictures."""

    @wraps(test)
    def run(tmp_path):
        async def main():
            limits = RequestLimits(elements=10**6)
            readers = {"page": lambda: PictureReader(system())}
            server = Server(tmp_path, Settings(limits=limits), readers=readers)
            await asyncio.gather(server.readers.load(), server.repository.refresh())
            try:
                await test(partial(call, server.app))
            finally:
                assert server.readers.close(lambda: 5.0)

        asyncio.run(main())

    del run.__wrapped__  # pytest reads the signature
    return run


URL, PNG = "/v2/models/page/infer", [("Content-Type", "image/png")]


def outputs(answer) -> dict:
    assert answer.status == 200, answer.body
    return {each["name"]: each["data"] for each in json.loads(answer.body)["outputs"]}


@served
async def test_a_file_and_an_array_give_the_same_lines(ask):
    picture = page(200, 100)
    lines = system()(picture)
    assert [len(line.text) for line in lines] > [0]
    image = {"name": "image", "shape": [*picture.shape], "datatype": "UINT8"}
    body = {"id": "7", "inputs": [image | {"data": picture.ravel().tolist()}]}
    answers = [await ask("POST", URL, as_png(picture), PNG)]
    answers.append(await ask("POST", URL, json.dumps(body).encode()))
    for answer in answers:
        parts = outputs(answer)
        assert parts["texts"] == [line.text for line in lines]
        assert np.reshape(parts["boxes"], (-1, 4, 2)).tolist() == [x.box.tolist() for x in lines]
        np.testing.assert_allclose(parts["scores"], [line.score for line in lines], rtol=1e-5)
    assert json.loads(answers[1].body)["id"] == "7"


@served
async def test_lines_of_several_requests_are_read_together(ask):
    pages = [page(*(80 + 16 * k for k in range(n))) for n in (1, 3, 2, 1)]
    lone = [[line.text for line in system()(each)] for each in pages]
    CALLS.clear()
    answers = await asyncio.gather(*(ask("POST", URL, as_png(each), PNG) for each in pages))
    assert [outputs(answer)["texts"] for answer in answers] == lone
    assert sum(CALLS) == 7
    assert len(CALLS) < 4  # requests


@served
async def test_a_bad_picture_fails_alone(ask):
    image = {"name": "image", "shape": [40, 40, 2], "datatype": "UINT8", "data": [0] * 3200}
    bad = json.dumps({"inputs": [image]}).encode()
    good = ("POST", URL, as_png(page(96)), PNG)
    answers = await asyncio.gather(*(ask(*each) for each in (good, ("POST", URL, bad), good)))
    assert [answer.status for answer in answers] == [200, 400, 200]
    assert outputs(answers[0])["texts"] == outputs(answers[2])["texts"] != []


@served
async def test_an_empty_page_has_no_lines(ask):
    answer = await ask("POST", URL, as_png(page()), PNG)
    assert outputs(answer) == {"boxes": [], "texts": [], "scores": []}
    assert [each["shape"] for each in json.loads(answer.body)["outputs"]] == [[0, 4, 2], [0], [0]]


@served
async def test_bad_requests_are_refused(ask):
    large = as_png(np.zeros((700, 700, 3), "uint8"))
    image = {"name": "image", "shape": [2, 2, 2], "datatype": "UINT8", "data": [0] * 8}
    for content, headers, why in (
        (b"no picture", PNG, "no picture that Pillow reads"),
        (as_png(page(100))[:-30], PNG, "no picture that Pillow reads"),
        (large, PNG, "too many"),
        (json.dumps({"inputs": [image]}).encode(), [], "1 or 3 channels"),
        (json.dumps({"inputs": [{**image, "name": "x"}]}).encode(), [], "no input 'x'"),
        (b"{", [], "JSON"),
    ):
        answer = await ask("POST", URL, content, headers)
        assert answer.status == 400
        assert why in json.loads(answer.body)["error"]
    assert (await ask("POST", "/v2/models/none/infer", b"{}")).status == 404
    counted = (await ask("GET", "/metrics")).body.decode()
    assert 'minipaddle_requests_total{model="page",status="400",version="1"} 6.0' in counted


@served
async def test_a_client_can_ask_what_there_is(ask):
    about = json.loads((await ask("GET", "/v2/models/page")).body)
    assert [each["name"] for each in about["outputs"]] == ["boxes", "texts", "scores"]
    assert (await ask("GET", "/v2/models/page/ready")).status == 200
    assert (await ask("GET", "/v2/health/ready")).status == 200
    assert (await ask("GET", "/v2/models/page/versions/2")).status == 404


def test_a_run_that_hangs_is_answered():
    slow = system()
    slow.finder = lambda x: time.sleep(0.8) or find_white(x)
    reader = PictureReader(slow, limit=0.1)
    with pytest.raises(Exception, match="does not end"):
        asyncio.run(reader.read(page(100)))
    assert reader.hangs
    with pytest.raises(Exception, match="does not end"):
        reader.require_room()
    assert reader.close(5)
