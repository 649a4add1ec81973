"""Writes the schemas of operators' kinds in tests/deploy/schemas, from what PyPI has of the operators.

    python -m tests.deploy.write_schemas

PodMonitor and ScaledObject are the CustomResourceDefinitions as cloudcoil's models have them; the kinds of KServe are
its own client, which KServe generates from its API types. Descriptions are dropped, and a key that a type does not have
is refused, as `kubectl apply` does. Types of Kubernetes itself inside of KServe's are any object: pods are validated by
Kubernetes' own schemas.
"""

import ast
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "schemas"
KSERVE = "kserve==0.21.0"
PROMETHEUS, KEDA = "cloudcoil.models.prometheus_operator==0.80.1.0", "cloudcoil.models.keda==2.16.1.0"
OF_CLOUDCOIL = {
    "PodMonitor": ("cloudcoil.models.prometheus_operator.v1", PROMETHEUS),
    "ScaledObject": ("cloudcoil.models.keda.v1alpha1", KEDA),
}
OF_KSERVE = {"ClusterServingRuntime": "V1alpha1ClusterServingRuntime", "InferenceService": "V1beta1InferenceService"}
_PLAIN = {"str": "string", "bool": "boolean", "int": "integer", "float": "number"}
_DROPPED = ("description", "title", "default", "examples")
_PRINT = "import json, {0}; print(json.dumps({0}.{1}.model_json_schema(by_alias=True)))"


def main() -> None:
    """Download the packages, and write a file for each kind."""
    with tempfile.TemporaryDirectory() as name:
        python = Path(name, "venv", "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", Path(name, "venv")], check=True)
        pip = [python, "-m", "pip", "--quiet"]
        subprocess.run([*pip, "install", "cloudcoil==0.6.0", PROMETHEUS, KEDA], check=True)
        subprocess.run([*pip, "download", "--no-deps", "--dest", name, KSERVE], check=True)
        for kind, (module, package) in OF_CLOUDCOIL.items():
            printed = subprocess.run([python, "-c", _PRINT.format(module, kind)], check=True, capture_output=True)
            write(kind, package, strict(json.loads(printed.stdout)))
        (wheel,) = Path(name).glob("kserve-*.whl")
        classes = without_unknown(dict(classes_of(wheel)))
        for kind, cls in OF_KSERVE.items():
            schema = {"$ref": f"#/$defs/{cls}", "$defs": {each: classes[each] for each in sorted(used(cls, classes))}}
            write(kind, KSERVE, schema)


def write(kind: str, package: str, schema: dict[str, Any]) -> None:
    """Write one schema, with its source."""
    source = f"From {package} of PyPI (Apache-2.0) by python -m tests.deploy.write_schemas."
    text = json.dumps({"$comment": source, **schema}, sort_keys=True, separators=(",", ":"))
    (FOLDER / f"{kind}.json").write_text(text.replace("},", "},\n") + "\n")


def strict(schema: Any, names: bool = False) -> Any:
    """The schema without texts, whose objects take no other keys; `names`: the keys are those of properties."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: strict(value, key in ("properties", "$defs"))
        for key, value in schema.items()
        if names or key not in _DROPPED
    }
    return {**kept, "additionalProperties": False} if not names and "properties" in kept else kept


def classes_of(wheel: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema of each class of KServe's client by its name, read from its source."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"kserve/models/v1\w+\.py", name):
                for node in ast.parse(archive.read(name)).body:
                    if isinstance(node, ast.ClassDef):
                        yield node.name, schema_of(node)


def schema_of(node: ast.ClassDef) -> dict[str, Any]:
    """The schema of one class. Its setters raise for None where a key is required."""
    tables = {
        target.id: ast.literal_eval(each.value)
        for each in node.body
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    keys = tables["attribute_map"]
    required = re.findall(r"Invalid value for `(\w+)`, must not be `None`", ast.unparse(node))
    return {
        "type": "object",
        "properties": {keys[name]: type_of(text) for name, text in tables["openapi_types"].items()},
        "required": sorted({keys[name] for name in required}),
        "additionalProperties": False,
    }


def type_of(text: str) -> dict[str, Any]:
    """The schema of a type as OpenAPI's generator writes it."""
    if match := re.fullmatch(r"list\[(.+)\]", text):
        return {"type": "array", "items": type_of(match[1])}
    if match := re.fullmatch(r"dict\(str, (.+)\)", text):
        return {"type": "object", "additionalProperties": type_of(match[1])}
    if text in _PLAIN:
        return {"type": _PLAIN[text]}
    return {"$ref": f"#/$defs/{text}"} if re.match(r"V1(alpha|beta)\d", text) else {}


def without_unknown(classes: dict[str, Any]) -> dict[str, Any]:
    """The schemas where a class that the client does not have is anything."""
    text = re.sub(
        r'{"\$ref": "#/\$defs/(\w+)"}', lambda match: match[0] if match[1] in classes else "{}", json.dumps(classes)
    )
    return dict(json.loads(text))


def used(cls: str, classes: dict[str, dict[str, Any]]) -> set[str]:
    """The class and those that its schema refers to."""
    names, new = {cls}, [cls]
    while new:
        for name in re.findall(r"#/\$defs/(\w+)", json.dumps(classes[new.pop()])):
            if name not in names:
                names.add(name)
                new.append(name)
    return names


if __name__ == "__main__":
    main()
