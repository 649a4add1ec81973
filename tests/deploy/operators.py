"""Schemas of the operators' kinds in deploy/kubernetes, as their CustomResourceDefinitions and API types have them.

`python -m tests.deploy.write_schemas` writes the files, and says where they come from. What no definition tells, but
the controllers refuse, is added here: KEDA's scaler for Prometheus needs three of its metadata, and KServe's storage
initialiser knows these schemes.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "schemas"

_STORAGE = r"^(gs|s3|pvc|hdfs|webhdfs|https?|hf|file|oci|azure)://\S+$"
_KINDS = {
    "monitoring.coreos.com/v1": "PodMonitor",
    "keda.sh/v1alpha1": "ScaledObject",
    "serving.kserve.io/v1alpha1": "ClusterServingRuntime",
    "serving.kserve.io/v1beta1": "InferenceService",
}


def _spec(**properties: Any) -> dict[str, Any]:
    return {"properties": {"spec": {"properties": properties}}}


_PROMETHEUS = {
    "if": {"properties": {"type": {"const": "prometheus"}}},
    "then": {"properties": {"metadata": {"required": ["serverAddress", "query", "threshold"]}}},
}
_PROTOCOL = {"enum": ["v1", "v2", "grpc-v1", "grpc-v2"]}
_ADDED: Mapping[str, Mapping[str, Any]] = {
    "PodMonitor": {},
    "ScaledObject": _spec(triggers={"items": _PROMETHEUS}),
    "ClusterServingRuntime": _spec(protocolVersions={"items": _PROTOCOL}),
    "InferenceService": _spec(
        predictor={
            "properties": {"model": {"properties": {"storageUri": {"pattern": _STORAGE}, "protocolVersion": _PROTOCOL}}}
        }
    ),
}


def _whole(version: str, kind: str) -> dict[str, Any]:
    named = {
        "properties": {"apiVersion": {"const": version}, "kind": {"const": kind}, "metadata": {"required": ["name"]}}
    }
    required = {"required": ["apiVersion", "kind", "metadata", "spec"]}
    return {**json.loads((FOLDER / f"{kind}.json").read_text()), "allOf": [named | required, _ADDED[kind]]}


SCHEMAS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    (version, kind): _whole(version, kind) for version, kind in _KINDS.items()
}
"""The schema of each kind by its API version and name."""
