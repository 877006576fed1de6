"""Ray: parameter servers as actors, workers that leave and join, KubeRay's job, on one cluster.

The extra `ray`: `./run test tests/distributed -k ray`.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np
import pytest
import yaml

from minipaddle.distributed import fleet
from minipaddle.distributed.ps import on_ray
from minipaddle.distributed.ps.client import Client
from minipaddle.distributed.ps.server import ServerLost
from minipaddle.distributed.ps.session import session
from tests.distributed.ps_conformance import CHECKS, SERVERS, WORKERS, config, in_threads, ones
from tests.distributed.ray_cluster import ray_here
from tests.distributed.test_elastic import ROOT, SMALL, Job, alone
from tests.distributed.test_parameter_servers import as_worker, by_itself, sgd

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(500),
    pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed"),
]


@pytest.fixture(scope="module")
def around():
    """The environment of programs of a cluster."""
    with ray_here() as found:
        yield found


@contextmanager
def program_of(around):
    """A block in which this process is a program of the cluster. Its actors end with it."""
    hook, terminate = sys.excepthook, signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        for name in around.keys() - {"PYTHONPATH"}:
            patch.setenv(name, around[name])
        try:
            yield patch
        finally:
            session.now = None
            on_ray.ray().shutdown()
            sys.excepthook = hook
            signal.signal(signal.SIGTERM, terminate)


def kill(carrier, server: int) -> None:
    """`kill -9` of the process of a server."""
    process = carrier.actors[server].__ray_call__.remote(lambda actor: os.getpid())
    os.kill(on_ray.ray().get(process, timeout=120), signal.SIGKILL)


# ---- parameter servers -----------------------------------------------------------------------


def test_conformance(around, tmp_path):
    """Two workers are threads of this process."""
    with program_of(around):
        carrier = on_ray.Ray(SERVERS, WORKERS, str(tmp_path))
        results = in_threads(carrier, lambda server: kill(carrier, server))
    for found in results:
        assert "".join(found.values()) == ""
        assert [*found] == [*CHECKS]


def work(worker: int, after=lambda step: None):
    """Be a worker of two, with the role that the environment gives."""
    os.environ |= {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(worker)}
    fleet.init()
    return as_worker(sgd, {}, worker, after=after)


def test_two_processes_are_one_process_on_both_batches(around, tmp_path):
    """Each asks for the servers, which live until both have stopped; one of them is killed."""
    losses, table = by_itself(sgd)
    given = {
        "MINIPADDLE_PS_CARRIER": "ray", "MINIPADDLE_PS_FOLDER": str(tmp_path),
        "PADDLE_PSERVERS_IP_PORT_LIST": "a,b", "PADDLE_TRAINERS_NUM": "2",
    }  # fmt: skip
    program = (
        "import json; from tests.distributed.test_ray import work; print(json.dumps(work(1)[0]))"
    )
    with program_of(around) as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        patch.setenv("TRAINING_ROLE", "")  # `work` sets them
        patch.setenv("PADDLE_TRAINER_ID", "")
        other = subprocess.Popen(
            [sys.executable, "-c", program], env=os.environ | around | given, cwd=ROOT, text=True,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        with other:
            own, (ids, rows), reports = work(
                0, lambda step: kill(session.now.carrier, 0) if step == 2 else None
            )
            said, _ = other.communicate(timeout=120)
    np.testing.assert_allclose(np.mean([own, json.loads(said)], 0), losses, rtol=1e-6)
    np.testing.assert_allclose(rows, table[ids], rtol=1e-5, atol=1e-7)
    assert [each["steps"]["table"] for each in reports] == [len(losses)] * 2


def test_a_server_without_files_is_lost(around):
    with program_of(around):
        client = Client(on_ray.Ray(1, 1, None, "without files"), timeout=120)
        client.create("t", config())
        client.push("t", [1], ones(1), 1.0)
        kill(client.carrier, 0)
        with pytest.raises(ServerLost, match="Ray did not bring it back"):
            client.pull("t", [1])


# ---- elastic workers -------------------------------------------------------------------------


def test_the_job_of_kuberay_goes_on_while_workers_leave_and_join(around, tmp_path, capfd):
    """Its entry point, for a smaller model on three workers. One is killed; two make the step;
    another joins; then one rank, without Ray.
    """
    expected = alone(tmp_path / "alone", capfd)
    job = yaml.safe_load((ROOT / "deploy/rayjob.yaml").read_text())
    _, script, folder, *given = shlex.split(job["spec"]["entrypoint"])
    script, folder = script.replace("/app", str(ROOT)), folder.replace("/runs", str(tmp_path))
    job = Job(script, folder, *given, *SMALL, "--ray", 3, "--steps", 10**6, **around)
    for each in job.steps():
        if each["step"] == 4:
            (processes,) = re.findall(r"elastic: 3 workers, processes (.+)", "".join(job.told))
            os.kill(int(processes.split(", ")[1]), signal.SIGKILL)
        if each["step"] > 20 and each["ranks"] == 3:
            job.process.send_signal(signal.SIGINT)
            break
    _, said = job.end()
    assert re.search(r"elastic: worker 1 \(process \d+\) was lost in step \d+: 2 go on", said)
    assert re.search(r"elastic: a worker joins \(process \d+\): there are 3", said)
    first = [job.curve[step] for step in range(21)]
    assert {ranks for _, ranks in first} == {2, 3}
    np.testing.assert_allclose(
        [loss for loss, _ in first], [expected[step] for step in range(21)], rtol=1e-6
    )
    rest = alone(folder, capfd, "--steps", str(max(job.curve) + 1))
    assert rest
    for step in rest.keys() & job.curve.keys():
        np.testing.assert_allclose(rest[step], job.curve[step][0], rtol=1e-6)
