"""The files of deploy/, without a cluster: Kubernetes' schemas, KServe's fields, the command line.

`kubernetes-validate` brings Kubernetes' own schemas. KServe's fields are those of its package
(`kserve_fields.py`). Of the Dockerfile its instructions and what it copies and runs are checked; an
image is not built.
"""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from minipaddle.serving.command import GRACE, VARIABLE, parser

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
KSERVE = json.loads((ROOT / "tests/data/kserve_fields.json").read_text())["classes"]
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}
INSTRUCTIONS = {"ARG", "FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "EXPOSE", "STOPSIGNAL",
                "ENTRYPOINT", "CMD"}  # fmt: skip


def resources(name: str) -> list:
    return [*yaml.safe_load_all((DEPLOY / name).read_text())]


def container_of(resource) -> dict:
    spec = resource["spec"]
    (container,) = (spec["template"]["spec"] if "template" in spec else spec)["containers"]
    return container


def faults(value, kind: str, at: str) -> list[str]:
    """What a value has that a kind of KServe's has not; Kubernetes' own kinds are left to it."""
    if match := re.fullmatch(r"list\[(.+)\]", kind):
        if not isinstance(value, list):
            return [f"{at} is no list"]
        return [fault for k, x in enumerate(value) for fault in faults(x, match[1], f"{at}[{k}]")]
    if kind.startswith("dict("):
        return [] if isinstance(value, dict) else [f"{at} is no object"]
    if kind in PLAIN:
        return [] if isinstance(value, PLAIN[kind]) else [f"{at} is no {kind}"]
    if kind not in KSERVE:
        return []
    fields, required = KSERVE[kind]["fields"], KSERVE[kind]["required"]
    found = [f"{at}.{name} is missing" for name in required if name not in value]
    for name, inner in value.items():
        if name in fields:
            found += faults(inner, fields[name], f"{at}.{name}")
        else:
            found.append(f"{at}.{name} does not exist")
    return found


def pod(container) -> dict:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"},
            "spec": {"containers": [container]}}  # fmt: skip


def validate(resource) -> None:
    kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


def test_kubernetes():
    found = resources("kubernetes.yaml")
    assert [each["kind"] for each in found] == ["Deployment", "Service"]
    for resource in found:
        validate(resource)
    deployment, service = found
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    container = container_of(deployment)
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    volumes = {each["name"] for each in deployment["spec"]["template"]["spec"]["volumes"]}
    assert {each["name"] for each in container["volumeMounts"]} == volumes


def test_the_token_is_a_secret():
    """It stands in no argument, and a cluster without it serves without a token."""
    container = container_of(resources("kubernetes.yaml")[0])
    (variable,) = container["env"]
    assert variable["name"] == VARIABLE
    assert variable["valueFrom"]["secretKeyRef"]["optional"]
    assert "token" not in str(container["args"])


def test_a_wrong_manifest_is_found():
    deployment = resources("kubernetes.yaml")[0]
    container_of(deployment)["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        validate(deployment)


def test_kserve():
    runtime, service = resources("kserve.yaml")
    assert faults(runtime, "V1alpha1ServingRuntime", "runtime") == []
    assert faults(service, "V1beta1InferenceService", "service") == []
    validate(pod(container_of(runtime)))
    model = service["spec"]["predictor"]["model"]
    assert model["runtime"] == runtime["metadata"]["name"]
    assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]
    formats = {each["name"] for each in runtime["spec"]["supportedModelFormats"]}
    assert model["modelFormat"]["name"] in formats


def test_a_wrong_kserve_manifest_is_found():
    _, service = resources("kserve.yaml")
    del service["spec"]["predictor"]["model"]["modelFormat"]
    service["spec"]["predictor"]["maxReplicas"] = "4"
    service["spec"]["predictor"]["models"] = {}
    assert faults(service, "V1beta1InferenceService", "service") == [
        "service.spec.predictor.maxReplicas is no int",
        "service.spec.predictor.model.modelFormat is missing",
        "service.spec.predictor.models does not exist",
    ]


@pytest.mark.parametrize(("file", "k"), [("kubernetes.yaml", 0), ("kserve.yaml", 0)])
def test_a_container_starts_the_server_and_asks_it_whether_it_is_ready(file, k):
    container = container_of(resources(file)[k])
    options = parser().parse_args(container["args"])
    assert options.host == "0.0.0.0"
    assert options.port == container["ports"][0]["containerPort"]
    assert options.drain > 2 * container["readinessProbe"]["periodSeconds"]  # it is noticed
    assert container["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/v2/health/live"
    mounted = {each["mountPath"] for each in container.get("volumeMounts", [])} | {"/mnt/models"}
    assert options.folder in mounted


def end_of(args: list[str]) -> float:
    """The seconds after SIGTERM in which the server ends."""
    options = parser().parse_args(args)
    return options.drain + options.drain_limit + GRACE


def test_the_server_ends_before_it_is_killed():
    """By Kubernetes, after 30 seconds unless a pod says more; by Docker, after 10."""
    pod = resources("kubernetes.yaml")[0]["spec"]["template"]["spec"]
    assert end_of(pod["containers"][0]["args"]) < pod["terminationGracePeriodSeconds"]
    assert end_of(container_of(resources("kserve.yaml")[0])["args"]) < 30
    assert end_of(json.loads(dict(instructions())["CMD"])) < 10
    assert end_of(["/models"]) < 10  # with other arguments than those of the image


def instructions(target: str = "serve") -> list[tuple[str, str]]:
    """Those of the stage `base`, and of another one."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found, stage = [], ""
    for word, rest in (line.split(maxsplit=1) for line in lines):
        stage = rest.split()[-1] if word == "FROM" else stage
        found += [(word, rest)] * (stage in ("base", target))
    return found


def test_dockerfile():
    found = instructions()
    assert {word for word, _ in found} <= INSTRUCTIONS
    assert [rest for word, rest in found if word == "FROM"][1:] == ["base AS serve"]
    assert (DEPLOY / "Dockerfile").read_text().split("FROM ")[-1].startswith("base AS serve\n")
    for word, rest in found:
        if word == "COPY":
            assert all((ROOT / source).exists() for source in rest.split()[:-1])
    rest = dict(found)
    assert json.loads(rest["ENTRYPOINT"]) == ["python", "-m", "minipaddle", "serve"]
    options = parser().parse_args(json.loads(rest["CMD"]))
    assert str(options.port) == rest["EXPOSE"]
    assert rest["USER"] not in ("0", "root")


DIGEST = "sha256:" + 32 * "0a"
GIVEN = {
    f"python:3.12-slim@{DIGEST}": True, f"localhost:5000/python@{DIGEST}": True,
    "": False, "python:3.12-slim": False, "python@sha256:0a": False, f"@{DIGEST}": False,
    f"python@{DIGEST}0": False, f"python@md5:{DIGEST}": False,
}  # fmt: skip
"""Names of images, and whether they have a digest."""


@pytest.mark.parametrize(("image", "good"), GIVEN.items())
def test_an_image_is_built_on_one_with_a_digest(image, good):
    """The first instruction fails without one; the name itself is given to the build."""
    (command, *_) = [rest for word, rest in instructions() if word == "RUN"]
    done = subprocess.run(["sh", "-c", command], env={"PYTHON": image, "PATH": os.defpath},
                          capture_output=True, text=True)  # fmt: skip
    assert (done.returncode == 0) == good
    assert ("expected name@sha256:…" in done.stderr) != good
    names = re.findall(r"^FROM (\S+)", (DEPLOY / "Dockerfile").read_text(), re.M)
    assert names == ["${PYTHON}", "base", "base"]


@pytest.mark.parametrize(("image", "good"), GIVEN.items())
@pytest.mark.parametrize("file", sorted(DEPLOY.glob("*.yaml")), ids=lambda file: file.name)
def test_manifests_are_applied_with_an_image_that_has_a_digest(file, image, good, tmp_path):
    """With a kubectl that prints what it is given."""
    (tmp_path / "kubectl").write_text('#!/bin/sh\ntest "$*" = "apply -f -" && cat\n')
    (tmp_path / "kubectl").chmod(0o755)
    around = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    call = ["sh", DEPLOY / "apply.sh", file, *([image] if image else [])]
    done = subprocess.run(call, env=around, capture_output=True, text=True)
    assert (done.returncode == 0) == good
    if not good:
        assert (done.stdout, "expected NAME@sha256:…" in done.stderr) == ("", True)
        return
    assert done.stdout == file.read_text().replace("IMAGE@DIGEST", image)
    images = re.findall(r"^ *image: (.+)$", done.stdout, re.M)
    assert {*images} == {image}


@pytest.mark.parametrize(("target", "extra"), [("serve", "serve"), ("train", "cluster")])
def test_packages_are_those_of_the_lock(target, extra):
    runs = " && ".join(rest for word, rest in instructions(target) if word == "RUN")
    assert re.findall(r"uv sync (.+?)(?: &&|$)", runs) == [
        f"--frozen --no-install-project --extra {extra}"
    ]
    assert re.findall(r"pip install (.+?)(?: &&|$)", runs) == [
        "--no-cache-dir --require-hashes -r deploy/uv.txt"
    ]
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    (own,) = [each for each in lock["package"] if each["name"] == "minipaddle"]
    assert extra in own["optional-dependencies"]
    copied = " ".join(rest for word, rest in instructions(target) if word == "COPY").split()
    assert {"pyproject.toml", "uv.lock", "minipaddle", "deploy/uv.txt"} <= {*copied}


def test_no_file_accepts_the_key_of_a_stranger():
    """A client of ssh checks the key of a server."""
    texts = [file.read_text() for file in DEPLOY.iterdir() if file.is_file()]
    found = re.findall(r"StrictHostKeyChecking[ =]+(\w+)", "".join(texts))
    assert found == ["yes"]
