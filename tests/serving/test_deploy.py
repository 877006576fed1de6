"""The files of deploy/, without a cluster: Kubernetes' schemas, KServe's fields, the command line.

`kubernetes-validate` brings Kubernetes' own schemas. KServe's fields are those of its package
(`kserve_fields.py`). Of the Dockerfile its instructions and what it copies and runs are checked; an
image is not built.
"""

import json
import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from minipaddle.serving.command import parser

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
KSERVE = json.loads((ROOT / "tests/data/kserve_fields.json").read_text())["classes"]
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}
INSTRUCTIONS = {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "EXPOSE", "STOPSIGNAL",
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


def test_the_pod_outlives_its_draining():
    spec = resources("kubernetes.yaml")[0]["spec"]["template"]["spec"]
    options = parser().parse_args(spec["containers"][0]["args"])
    assert spec["terminationGracePeriodSeconds"] > options.drain + 20


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
    copied = {source for word, rest in found if word == "COPY" for source in rest.split()[:-1]}
    project = (ROOT / "pyproject.toml").read_text()
    for needed in re.findall(r'^readme = "(.+)"|^license-files = \["(.+)"\]', project, re.M):
        assert set(filter(None, needed)) <= copied
