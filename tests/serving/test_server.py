"""The server in one process, without sockets: answers, limits, overload, models that change."""

import asyncio
import json
import threading
import time
from collections import Counter

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from minipaddle import nn
from minipaddle.serving.app import Server, Settings
from minipaddle.serving.protocol import JSON_LENGTH, RequestLimits
from minipaddle.serving.repository import ServingOptions
from minipaddle.static import InputSpec

from .serving import body_of, call, infer, save, save_affine, serving, values

INFER = "/v2/models/affine/infer"


@pytest.fixture
def folder(tmp_path):
    save_affine(tmp_path)
    return tmp_path


def slow(server, seconds, name="affine", version=1):
    """Let each run of a model take longer."""
    runner = server.repository.models[name][version].runner
    run = type(runner.served.replica()).run

    def slower(self, requests):
        time.sleep(seconds)
        return run(self, requests)

    for task in runner.tasks:
        task.cancel()
    replicas = [runner.served.replica() for _ in runner.tasks]
    for replica in replicas:
        replica.run = slower.__get__(replica)
    runner.start(replicas)
    return runner


async def metrics(server):
    """Samples by name and labels."""
    text = (await call(server.app, "GET", "/metrics")).body.decode()
    families = text_string_to_metric_families(text)
    return {
        (s.name.removeprefix("minipaddle_"), *sorted(s.labels.values())): s.value
        for family in families
        for s in family.samples
    }


# ---- answers -----------------------------------------------------------------------------------


def test_metadata_health_and_errors(folder):
    async def main():
        server = await serving(folder)
        get = lambda path: call(server.app, "GET", path)
        assert (await get("/v2/health/live")).status == 200
        assert (await get("/v2/health/ready")).status == 200
        assert json.loads((await get("/v2")).body)["name"] == "minipaddle"
        found = json.loads((await get("/v2/models/affine")).body)
        assert found["versions"] == ["1"]
        assert found["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}]
        assert (await get("/v2/models/affine/versions/1/ready")).status == 200
        for path in ("/v2/models/other", "/v2/models/affine/versions/2/ready", "/v2/models/a/b",
                     "/v2/models/affine/versions/x", "/v2/models/..%2F", "/"):  # fmt: skip
            assert (await get(path)).status == 404
        assert (await get(INFER)).status == 405
        wrong = await call(server.app, "POST", "/v2/models/other/infer", body_of([1, 2]))
        assert wrong.status == 404
        assert "there is no model 'other'; there are ['affine']" in json.loads(wrong.body)["error"]

    asyncio.run(main())


def test_numbers_come_back_as_lists_and_as_bytes(folder):
    async def main():
        server = await serving(folder)
        answer = await infer(server, [[1, 2], [3, 4]], id="five")
        np.testing.assert_allclose(values(answer), [[3, 5], [7, 9]])
        assert json.loads(answer.body)["id"] == "five"
        x = np.array([[1, 2]], "float32")
        head = {"name": "x", "shape": [1, 2], "datatype": "FP32",
                "parameters": {"binary_data_size": 8}}  # fmt: skip
        every = {"binary_data_output": True}
        text = json.dumps({"inputs": [head], "parameters": every}).encode()
        headers = [(JSON_LENGTH, str(len(text)))]
        answer = await call(server.app, "POST", INFER, text + x.tobytes(), headers)
        n = int(answer.headers[JSON_LENGTH.lower()])
        assert json.loads(answer.body[:n])["outputs"][0]["parameters"] == {"binary_data_size": 8}
        np.testing.assert_allclose(np.frombuffer(answer.body[n:], "float32"), [3, 5])

    asyncio.run(main())


def test_requests_share_a_run(folder):
    async def main():
        server = await serving(folder, Settings(options=ServingOptions(largest=8, window_ms=1000)))
        answers = await asyncio.gather(*(infer(server, [k, 1]) for k in range(8)))
        for k, answer in enumerate(answers):
            np.testing.assert_allclose(values(answer), [[2 * k + 1, 3]])
        found = await metrics(server)
        assert found["batch_rows_count", "1", "affine"] == 1
        assert found["batch_rows_sum", "1", "affine"] == 8
        assert found["requests_total", "1", "200", "affine"] == 8

    asyncio.run(main())


def test_rows_that_depend_on_each_other_do_not_share_a_run(tmp_path):
    save(lambda x: x - x.mean(0), tmp_path, "mean", 1, InputSpec([None, 2], "float32", "x"))

    async def main():
        server = await serving(tmp_path, Settings(options=ServingOptions(largest=8, window_ms=20)))
        answers = await asyncio.gather(*(infer(server, [k, 1], "mean") for k in range(4)))
        assert all(np.array_equal(values(answer), [[0, 0]]) for answer in answers)
        pair = values(await infer(server, [[1, 1], [3, 1]], "mean"))
        np.testing.assert_allclose(pair, [[-1, 0], [1, 0]])

    asyncio.run(main())


def test_one_bad_request_does_not_spoil_its_batch(tmp_path):
    net = nn.Embedding(10, 2)
    save(net, tmp_path, "words", 1, InputSpec([None, 1], "int64", "x"))

    def body(word):
        given = {"name": "x", "shape": [1, 1], "datatype": "INT64", "data": [word]}
        return json.dumps({"inputs": [given]}).encode()

    async def main():
        server = await serving(
            tmp_path, Settings(options=ServingOptions(largest=4, window_ms=1000))
        )
        calls = (call(server.app, "POST", "/v2/models/words/infer", body(w)) for w in (1, 99, 3, 9))
        answers = await asyncio.gather(*calls)
        assert [answer.status for answer in answers] == [200, 400, 200, 200]
        for word, answer in zip((1, 3, 9), answers[:1] + answers[2:], strict=True):
            np.testing.assert_allclose(values(answer)[0, 0], net.weight.numpy()[word], rtol=1e-6)

    asyncio.run(main())


def test_inputs_that_do_not_fit_each_other(tmp_path):
    specs = [InputSpec([None, 2], "float32", name) for name in "xy"]
    save(lambda x, y: x * y, tmp_path, "two", 1, *specs)

    def body(*rows):
        inputs = [
            {"name": name, "shape": [n, 2], "datatype": "FP32", "data": [3] * 2 * n}
            for name, n in zip("xy", rows, strict=True)
        ]
        return json.dumps({"inputs": inputs}).encode()

    async def main():
        server = await serving(tmp_path)
        answer = await call(server.app, "POST", "/v2/models/two/infer", body(1, 2))
        assert answer.status == 400
        assert json.loads(answer.body)["error"] == (
            "y has the shape [2, 2]\n  expected: float32[batch, 2], where batch = 1"
        )
        answer = await call(server.app, "POST", "/v2/models/two/infer", body(2, 2))
        np.testing.assert_allclose(values(answer), [[9, 9]] * 2)

    asyncio.run(main())


def test_a_large_request_does_not_hold_others_up(tmp_path):
    """A list of a million numbers is read beside the loop."""
    save(lambda x: x.sum(1), tmp_path, "sum", 1, InputSpec([None, None], "float32", "x"))
    count = 10**6
    head = {"name": "x", "shape": [1, count], "datatype": "FP32", "data": [1] * count}
    body = json.dumps({"inputs": [head]}).encode()

    async def main():
        server = await serving(tmp_path)
        task = asyncio.create_task(call(server.app, "POST", "/v2/models/sum/infer", body))
        turns = 0
        while not task.done():
            await asyncio.sleep(0.001)
            turns += 1
        assert values(await task).tolist() == [count]
        assert turns > 5

    asyncio.run(main())


def test_shapes_that_a_stranger_thinks_up_are_not_all_compiled(tmp_path):
    net = nn.Sequential(nn.LayerNorm(2), nn.GELU())
    save(net, tmp_path, "open", 1, InputSpec([None, None, 2], "float32", "x"))

    async def main():
        server = await serving(tmp_path)
        served = server.repository.models["open"][1].runner.served
        for n in range(1, 40):
            x = np.ones((1, n, 2), "float32")
            given = {"name": "x", "shape": [1, n, 2], "datatype": "FP32", "data": x.tolist()}
            body = json.dumps({"inputs": [given]}).encode()
            answer = await call(server.app, "POST", "/v2/models/open/infer", body)
            assert values(answer).shape == (1, n, 2)
        assert len(served.compiled) == 16 + len(served.buckets)

    asyncio.run(main())


# ---- limits ------------------------------------------------------------------------------------


def test_limits(folder):
    async def main():
        limits = RequestLimits(body=2000, elements=50)
        server = await serving(folder, Settings(limits=limits, patience=0.1))
        post = lambda *args, **more: call(server.app, "POST", INFER, *args, **more)
        assert (await post(b" " * 2001)).status == 413
        assert (await post(b"", [("content-length", "999999999999999999999999")])).status == 413
        assert (await post(chunks=[b" " * 999] * 3)).status == 413
        assert (await post(body_of([[1, 2]] * 26))).status == 400
        assert (await post(body_of([[1, 2]] * 17))).status == 400  # of a batch of 16
        assert (await post(body_of(np.zeros((0, 2))))).status == 400
        assert (await post(body_of([1, 2]), [("content-encoding", "gzip")])).status == 415
        stuck = await call(
            server.app, "POST", INFER, chunks=iter([b"{"]), headers=[("content-length", "5")]
        )
        assert stuck.status == 400
        assert (await post(body_of([1, 2]))).status == 200

    asyncio.run(main())


def test_a_body_that_never_ends_is_given_up(folder):
    async def main():
        server = await serving(folder, Settings(patience=0.05))
        sent = []

        async def receive():
            await asyncio.sleep(0.02)
            return {"type": "http.request", "body": b" ", "more_body": True}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": INFER,
            "headers": [],
            "query_string": b"",
        }
        await server.app(scope, receive, send)
        assert sent[0]["status"] == 408

    asyncio.run(main())


# ---- overload ----------------------------------------------------------------------------------


def test_every_request_is_answered_once_under_overload(folder):
    """200 requests for a server that can do 100 in their time; each has its own numbers."""

    async def main():
        options = ServingOptions(largest=4, window_ms=2, queue=12)
        server = await serving(folder, Settings(options=options))
        slow(server, 0.02)

        async def client(k):
            await asyncio.sleep(k * 0.001)
            parameters = {"priority": k % 3} | ({"timeout": 30_000} if k % 2 else {})
            answer = await infer(server, [k, 1], parameters=parameters)
            if answer.status == 200:
                np.testing.assert_allclose(values(answer), [[2 * k + 1, 3]])
            elif answer.status == 503:
                assert int(answer.headers["retry-after"]) >= 1
            return answer.status

        statuses = Counter(await asyncio.gather(*map(client, range(200))))
        assert set(statuses) == {200, 503, 504}
        found = await metrics(server)
        for status, count in statuses.items():
            assert found["requests_total", "1", str(status), "affine"] == count
        assert found["queue_requests", "1", "affine"] == 0
        np.testing.assert_allclose(values(await infer(server, [1, 1])), [[3, 3]])

    asyncio.run(main())


def test_a_server_that_is_full_does_not_read(folder):
    async def main():
        server = await serving(folder, Settings(options=ServingOptions(window_ms=60_000, queue=1)))
        runner = server.repository.models["affine"][1].runner
        waiting = asyncio.create_task(infer(server, [1, 0]))
        while not len(runner.batcher):
            await asyncio.sleep(0)
        assert (await call(server.app, "POST", INFER, b"no JSON")).status == 503
        await server.repository.drain()
        assert (await waiting).status == 200

    asyncio.run(main())


def test_a_client_that_goes_away_frees_its_place(folder):
    async def main():
        server = await serving(folder, Settings(options=ServingOptions(window_ms=60_000)))
        runner = server.repository.models["affine"][1].runner
        task = asyncio.create_task(infer(server, [1, 2]))
        while not len(runner.batcher):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert len(runner.batcher) == 0

    asyncio.run(main())


def test_a_deadline_is_kept_though_the_run_takes_longer(folder):
    async def main():
        server = await serving(folder)
        slow(server, 0.3)
        began = time.monotonic()
        answer = await infer(server, [1, 2], parameters={"timeout": 20_000})
        assert answer.status == 504
        assert time.monotonic() - began < 0.25

    asyncio.run(main())


# ---- models that change ------------------------------------------------------------------------


def test_a_model_is_loaded_again_under_load(folder):
    async def main():
        server = await serving(folder, Settings(control=True, options=ServingOptions(window_ms=1)))
        slow(server, 0.005)
        found, going = [], True

        async def client():
            while going:
                found.append(values(await infer(server, [1, 0]))[0, 0])

        clients = [asyncio.create_task(client()) for _ in range(4)]
        await asyncio.sleep(0.05)
        save_affine(folder, factor=5.0)
        old = server.repository.models["affine"][1].runner
        answer = await call(server.app, "POST", "/v2/repository/models/affine/load")
        assert answer.status == 200
        before = len(found)
        assert values(await infer(server, [1, 0]))[0, 0] == 6
        await asyncio.sleep(0.1)
        going = False
        await asyncio.gather(*clients)
        assert set(found) == {3.0, 6.0}
        assert 3.0 not in found[before + len(clients) :]
        assert all(task.done() for task in old.tasks)
        assert not server.repository.closing

    asyncio.run(main())


def test_what_waits_is_answered_by_the_model_it_came_to(folder):
    async def main():
        server = await serving(folder, Settings(options=ServingOptions(window_ms=60_000)))
        runner = server.repository.models["affine"][1].runner
        waiting = asyncio.create_task(infer(server, [1, 0]))
        while not len(runner.batcher):
            await asyncio.sleep(0)
        save_affine(folder, factor=5.0)
        await server.repository.refresh()
        assert server.repository.models["affine"][1].runner is not runner
        assert values(await asyncio.wait_for(waiting, 5))[0, 0] == 3

    asyncio.run(main())


def test_a_folder_is_watched(folder):
    async def main():
        server = await serving(folder)
        refresh = server.repository.refresh
        assert values(await infer(server, [1, 0]))[0, 0] == 3
        first = server.repository.models["affine"][1]
        save_affine(folder, version=2, factor=7.0)
        save_affine(folder, "other", factor=1.0)
        await refresh()
        assert server.repository.models["affine"][1] is first  # its files are the same
        assert values(await infer(server, [1, 0]))[0, 0] == 8
        old = await call(server.app, "POST", "/v2/models/affine/versions/1/infer", body_of([1, 0]))
        assert values(old)[0, 0] == 3
        for file in (folder / "other/1").iterdir():
            file.unlink()
        (folder / "other/1").rmdir()
        (folder / "other").rmdir()
        await refresh()
        assert (await infer(server, [1, 0], "other")).status == 404

    asyncio.run(main())


def test_a_damaged_model_does_not_replace_the_old_one(folder, capsys):
    async def main():
        server = await serving(folder, Settings(control=True))
        weights = folder / "affine/1/model.pdiparams"
        weights.write_bytes(weights.read_bytes()[:-1] + b"!")
        await server.repository.refresh()
        assert "affine was not loaded" in capsys.readouterr().out
        await server.repository.refresh()
        assert capsys.readouterr().out == ""  # once for each change
        answer = await call(server.app, "POST", "/v2/repository/models/affine/load")
        assert answer.status == 400
        assert server.repository.ready()  # as before
        assert (await call(server.app, "GET", "/v2/health/ready")).status == 200
        assert "damaged" in json.loads(answer.body)["error"]
        assert values(await infer(server, [1, 0]))[0, 0] == 3
        index = json.loads((await call(server.app, "POST", "/v2/repository/index")).body)
        assert [each["state"] for each in index] == ["READY", "UNAVAILABLE"]

    asyncio.run(main())


def test_a_file_that_vanishes_between_two_looks(folder, capsys, monkeypatch):
    """Whatever file it is, and whenever: the old model serves on, and the next look loads."""
    save_affine(folder, "other", factor=3.0)

    async def main():
        server = await serving(folder, Settings(poll=0.01))
        repository, model = server.repository, folder / "affine/1/model.pdmodel"
        look = repository.stamps
        for file in sorted(model.parent.iterdir()):
            kept = file.read_bytes()

            def vanish(name, file=file):
                found = look(name)
                if name == "affine":
                    file.unlink(missing_ok=True)
                return found

            monkeypatch.setattr(repository, "stamps", vanish)
            file.write_bytes(kept)  # as if it were another one
            await asyncio.wait_for(repository.refresh(), 30)
            assert "affine was not loaded" in capsys.readouterr().out
            monkeypatch.setattr(repository, "stamps", look)
            assert values(await infer(server, [1, 0]))[0, 0] == 3
            assert values(await infer(server, [1, 0], "other"))[0, 0] == 4
            file.write_bytes(kept)
            await asyncio.wait_for(repository.refresh(), 30)
            assert not repository.failed
        assert (await call(server.app, "GET", "/v2/health/ready")).status == 200

    asyncio.run(main())


def test_looking_goes_on_whatever_happens(folder, capsys, monkeypatch):
    async def main():
        server = Server(folder, Settings(poll=0.01))
        names, count = server.repository.names, iter(range(100))

        def fail():
            if (k := next(count)) < 3:
                raise (OSError, StopIteration, TypeError)[k]("gone")
            return names()

        monkeypatch.setattr(server.repository, "names", fail)
        async with server.app.router.lifespan_context(server.app):
            async with asyncio.timeout(30):
                while (answer := await infer(server, [1, 0])).status == 503:
                    assert answer.headers["retry-after"] == "1"
                    await asyncio.sleep(0.01)
            assert values(answer)[0, 0] == 3
        out = capsys.readouterr().out
        assert all(f"{name} in " in out for name in ("OSError", "RuntimeError", "TypeError"))

    asyncio.run(main())


def test_a_model_that_is_being_loaded(folder, monkeypatch):
    """503, also for a version of a model that serves; what does not exist is 404 all the same."""
    go = threading.Event()

    async def main():
        server = Server(folder, Settings())
        assert (await infer(server, [1, 0], "anything")).status == 503  # nobody has looked yet
        read = server.repository.read
        wait = lambda name, number: (go.wait(30), read(name, number))[1]
        monkeypatch.setattr(server.repository, "read", wait)
        task = asyncio.create_task(server.repository.refresh())
        while not server.repository.coming:
            await asyncio.sleep(0.01)
        assert (await infer(server, [1, 0])).status == 503
        assert (await infer(server, [1, 0], "none")).status == 404
        go.set()
        await task
        assert values(await infer(server, [1, 0]))[0, 0] == 3
        go.clear()
        save_affine(folder, version=2)
        task = asyncio.create_task(server.repository.refresh())
        second = "/v2/models/affine/versions/2/infer"
        while (await call(server.app, "POST", second, body_of([1, 0]))).status == 404:
            await asyncio.sleep(0.01)
        assert (await call(server.app, "POST", second, body_of([1, 0]))).status == 503
        assert values(await infer(server, [1, 0]))[0, 0] == 3
        go.set()
        await task
        assert (await call(server.app, "POST", second, body_of([1, 0]))).status == 200

    asyncio.run(main())


def test_parameters_of_the_repository(folder):
    async def main():
        server = await serving(folder, Settings(control=True))
        (folder / "bad").mkdir()
        await server.repository.refresh()
        index, load = "/v2/repository/index", "/v2/repository/models/affine/load"
        post = lambda path, body: call(server.app, "POST", path, json.dumps(body).encode())
        assert len(json.loads((await post(index, {})).body)) == 2
        (only,) = json.loads((await post(index, {"ready": True})).body)
        assert only["name"] == "affine"
        assert (await post(load, {"parameters": {}})).status == 200
        for path, body, message in (
            (index, {"ready": 1}, "`ready` is 1, not true or false"),
            (index, [], "the body is a list, not an object"),
            (index, {"name": "x"}, "no parameter 'name'"),
            (load, {"parameters": {"config": "{}"}}, "is an object, which is not supported"),
            (load, {"parameters": 3}, "`parameters` is 3, not an object"),
            (load[:-4] + "unload", {"parameters": {"unload_dependents": 0}}, "not true or false"),
        ):
            answer = await post(path, body)
            assert answer.status == 400
            assert message in json.loads(answer.body)["error"]
        body = {"parameters": {"unload_dependents": False}}
        assert (await post(load[:-4] + "unload", body)).status == 200

    asyncio.run(main())


def test_an_error_that_no_future_takes(folder):
    async def main():
        server = await serving(folder)
        runner = server.repository.models["affine"][1].runner
        runner.tasks[0].cancel()
        runner.start([lambda requests: [StopIteration()]])
        assert (await asyncio.wait_for(infer(server, [1, 2]), 20)).status == 500

    asyncio.run(main())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "affine/config.json is no JSON"), ("[]", "is a list, not an object"),
        ('{"larges": 1}', "no parameter 'larges' of affine/config.json; there are largest"),
        ('{"largest": 0}', "`largest` of affine/config.json is 0, not a whole number from 1"),
        ('{"preferred": 3}', "is 3, not a list"),
        ('{"buckets": [0]}', "is a list, not a list, each"),
        ('{"window_ms": "2"}', "not a number from 0"), ('{"run_limit": true}', "is true"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(folder, text, message):
    (folder / "affine/config.json").write_text(text)

    async def main():
        server = await serving(folder)
        assert not server.repository.ready()
        (found,) = server.repository.index()
        assert message in found["reason"]
        assert str(folder) not in found["reason"]

    asyncio.run(main())


def test_options_of_a_model(folder):
    (folder / "affine/config.json").write_text(
        '{"largest": 6, "window_ms": 3, "preferred": [2], "buckets": [3], "queue": 5, "workers": 2}'
    )

    async def main():
        server = await serving(folder)
        runner = server.repository.models["affine"][1].runner
        assert runner.batcher.policy == (6, 0.003, (2,), 5)
        assert runner.served.buckets == [3, 6]
        assert len(runner.tasks) == 2

    asyncio.run(main())


def test_strangers_may_not_load_models(folder):
    async def main():
        server = await serving(folder)
        for what in ("load", "unload"):
            answer = await call(server.app, "POST", f"/v2/repository/models/affine/{what}")
            assert answer.status == 403
        server.settings = Settings(control=True)
        for name in ("..", "affine%00", "nothing"):
            answer = await call(server.app, "POST", f"/v2/repository/models/{name}/load")
            assert answer.status == 404
        assert (await call(server.app, "POST", "/v2/repository/models/affine/unload")).status == 200
        assert (await infer(server, [1, 2])).status == 404

    asyncio.run(main())


def test_what_waits_is_answered_when_the_server_ends(folder):
    async def main():
        server = await serving(folder, Settings(options=ServingOptions(window_ms=50)))
        waiting = [asyncio.create_task(infer(server, [k, 0])) for k in range(3)]
        while len(server.repository.models["affine"][1].runner.batcher) < 3:
            await asyncio.sleep(0)
        await server.repository.drain()
        answers = await asyncio.gather(*waiting)
        assert [values(answer)[0, 0] for answer in answers] == [1, 3, 5]
        assert (await infer(server, [1, 2])).status == 404

    asyncio.run(main())


def test_the_server_is_live_before_it_is_ready(folder):
    async def main():
        server = Server(folder, Settings(poll=0.02))
        async with server.app.router.lifespan_context(server.app):
            assert (await call(server.app, "GET", "/v2/health/live")).status == 200
            assert (await call(server.app, "GET", "/v2/health/ready")).status == 503
            while (await call(server.app, "GET", "/v2/health/ready")).status == 503:
                await asyncio.sleep(0.01)
            save_affine(folder, "later", factor=4.0)
            while (await infer(server, [1, 0], "later")).status == 404:
                await asyncio.sleep(0.01)
        assert (await call(server.app, "GET", "/v2/health/ready")).status == 503
        assert server.repository.models == {}

    asyncio.run(main())


def test_a_failure_of_the_server_is_its_own(folder, capsys):
    """The client is told nothing of it; the log is."""

    async def main():
        server = await serving(folder)
        runner = server.repository.models["affine"][1].runner
        runner.tasks[0].cancel()
        runner.start([lambda requests: 1 / 0])
        answer = await infer(server, [1, 2])
        assert answer.status == 500
        assert json.loads(answer.body)["error"] == "the server failed; its log says why"
        assert "ZeroDivisionError in /v2/models/affine/infer" in capsys.readouterr().out
        assert (await metrics(server))["requests_total", "1", "500", "affine"] == 1

    asyncio.run(main())


def test_threads_of_paddle_are_no_business_of_the_loop(folder):
    """A long run does not keep the server from answering others."""

    async def main():
        server = await serving(folder)
        slow(server, 0.3)
        task = asyncio.create_task(infer(server, [1, 2]))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        assert (await call(server.app, "GET", "/v2/health/live")).status == 200
        assert time.monotonic() - began < 0.1
        assert (await task).status == 200

    asyncio.run(main())
