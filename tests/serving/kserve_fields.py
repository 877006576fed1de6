"""Writes tests/data/kserve_fields.json: which fields KServe's resources have, and of what kind.

    pip download kserve --no-deps && python -m tests.serving.kserve_fields kserve-*.whl

KServe publishes its schema (a CRD) with its Helm charts, not on PyPI; its Python package has the
same fields as classes, which are read here as text and not imported.
"""

import ast
import json
import re
import sys
import zipfile
from pathlib import Path

FILE = Path(__file__).parents[1] / "data/kserve_fields.json"
ROOTS = ["V1alpha1ServingRuntime", "V1beta1InferenceService"]


def classes(wheel: zipfile.ZipFile) -> dict:
    """For each class of KServe's own: its fields (JSON's name -> kind), and which are required."""
    found = {}
    for name in wheel.namelist():
        if not re.fullmatch(r"kserve/models/v1\w+\.py", name):
            continue
        text = wheel.read(name).decode()
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                values = {t.id: ast.literal_eval(each.value) for each in node.body
                          if isinstance(each, ast.Assign) for t in each.targets}  # fmt: skip
                kinds, names = values["openapi_types"], values["attribute_map"]
                needed = set(re.findall(r"Invalid value for `(\w+)`, must not be `None`", text))
                found[node.name] = {
                    "fields": {names[k]: kinds[k] for k in kinds},
                    "required": sorted(names[k] for k in needed),
                }
    return found


def main() -> None:
    path = Path(sys.argv[1])
    found, waiting, kept = classes(zipfile.ZipFile(path)), [*ROOTS], {}
    while waiting:
        name = waiting.pop()
        if name in found and name not in kept:
            kept[name] = found[name]
            waiting += re.findall(r"\w+", " ".join(found[name]["fields"].values()))
    record = {"kserve": path.name.split("-")[1], "classes": dict(sorted(kept.items()))}
    FILE.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
