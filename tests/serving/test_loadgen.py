"""The server under MLPerf's load generator, and what is read from its log."""

import json
import re
import socket
import threading

import pytest

from tests.benchmarks.serving_loadgen import read_log, run_scenario

from .process import Process
from .serving import body_of, save_affine

LOG = {
    "effective_samples_per_query": 1,
    "result_validity": "INVALID",
    "result_perf_constraints_met": False,
    "result_min_duration_met": True,
    "early_stopping_met": False,
    "result_query_count": 288,
    "result_completed_samples_per_sec": 282.5,
    "result_50.00_percentile_latency_ns": 2_000_000,
    "result_90.00_percentile_latency_ns": 3_000_000,
    "result_99.00_percentile_latency_ns": 4_000_000,
}


def log_of(**changes) -> str:
    """A log as LoadGen writes it."""
    facts = LOG | changes
    return "\n".join(f":::MLLOG {json.dumps({'key': k, 'value': v})}" for k, v in facts.items())


def test_a_log_is_read():
    result = read_log(log_of(), refused=3)
    assert (result.rate, result.count, result.refused) == (282.5, 288, 3)
    assert result.latencies == {0.5: 0.002, 0.9: 0.003, 0.99: 0.004}
    assert result.faults == ["late answers", "too few requests to be sure"]


def test_the_verdict_is_loadgens():
    met = {"result_perf_constraints_met": True, "early_stopping_met": True}
    assert read_log(log_of(result_validity="VALID", **met)).faults == []
    assert read_log(log_of(**met)).faults == ["invalid"]  # for a reason that has no key
    assert read_log(log_of(result_validity="VALID")).faults[-1] == "valid"


# ---- LoadGen itself ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a tiny network to serve."""
    pytest.importorskip("mlperf_loadgen", reason="the extra `loadgen` is missing")
    folder = tmp_path_factory.mktemp("models")
    save_affine(folder)
    return folder


@pytest.fixture(scope="module")
def process(folder):
    process = Process(folder)
    yield process
    process.end()


def request_of(name="affine") -> bytes:
    body = body_of([1, 2])
    head = f"POST /v2/models/{name}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
    return f"{head}{len(body)}\r\n\r\n".encode() + body


def answers(process, status: int) -> int:
    """How many answers with this status the server counts."""
    text = process.open("/metrics").read().decode()
    found = re.findall(rf'_requests_total{{.*status="{status}".*}} (\S+)', text)
    return int(sum(map(float, found)))


@pytest.mark.timeout(120)
def test_each_request_of_loadgen_is_answered_once(process):
    counted = 0
    for scenario in ("SingleStream", "Server", "Offline"):
        result = run_scenario(
            scenario, process.port, request_of(), seconds=0.3, rate=200.0, bound=10.0, least=60
        )
        assert result.count >= 60
        assert answers(process, 200) - counted == result.count
        counted = answers(process, 200)
        assert 0 < result.latencies[0.5] <= result.latencies[0.9] <= result.latencies[0.99]
        assert result.rate > 0
        assert result.refused == 0


@pytest.mark.timeout(120)
def test_refused_requests_are_sent_again(folder):
    process = Process(folder, "--queue", "1", "--window-ms", "20")
    result = run_scenario(
        "Offline", process.port, request_of(), seconds=0.1, rate=400.0, connections=8
    )
    assert result.refused > 0
    assert (answers(process, 503), answers(process, 200)) == (result.refused, result.count)
    process.end()


@pytest.fixture
def closing(folder):
    """The port of a server that closes each connection after an answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:  # closed
                    return
                with connection:
                    if connection.recv(1000):
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.timeout(120)
def test_closed_connections_are_opened_again(closing):
    result = run_scenario(
        "SingleStream", closing, request_of(), seconds=0.1, least=30, connections=1
    )
    assert (result.count >= 30, result.refused) == (True, 0)


@pytest.mark.timeout(120)
def test_a_mistake_ends_the_run(process):
    with pytest.raises(RuntimeError, match="the server answered 404"):
        run_scenario("Offline", process.port, request_of("nothing"), seconds=0.1, rate=100.0)
