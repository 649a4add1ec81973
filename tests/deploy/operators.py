"""Schemas of the operators' kinds in deploy/kubernetes: what their controllers take, as their API types have it.

Written from the types of prometheus-operator 0.95, KEDA 2.18 and KServe 0.16. Whatever a type has that no manifest of
ours uses is `ANY`; a key that a type does not have is refused. Containers are those of a pod, which Kubernetes' own
schema validates.
"""

from collections.abc import Mapping
from typing import Any

_ANY: Mapping[str, Any] = {}
_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_FLAG = {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0}
_DURATION = {"type": "string", "pattern": r"^(0|(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?)$"}
_PROTOCOL = {"type": "string", "enum": ["v1", "v2", "grpc-v1", "grpc-v2"]}


def _object(required: str, other: str = "", **types: Any) -> dict[str, Any]:
    """A mapping with these keys and no others; `other` are the keys of any type."""
    properties = {**types, **dict.fromkeys(other.split(), _ANY)}
    return {"type": "object", "required": required.split(), "properties": properties, "additionalProperties": False}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


def _kind(version: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    metadata = _object("name", "namespace", name=_TEXT, labels=_TEXTS, annotations=_TEXTS)
    types = {"apiVersion": {"const": version}, "kind": {"const": kind}, "metadata": metadata, "spec": spec}
    return _object("apiVersion kind metadata spec", **types)


_SELECTOR = _object("", matchLabels=_TEXTS, matchExpressions=_list(_object("key operator", "values", key=_TEXT)))
_ENDPOINT = _object(
    "",
    "authorization basicAuth bearerTokenSecret enableHttp2 filterRunning followRedirects honorLabels honorTimestamps "
    "metricRelabelings noProxy oauth2 params proxyConnectHeader proxyFromEnvironment proxyUrl relabelings scheme "
    "tlsConfig trackTimestampsStaleness",
    port=_TEXT,
    portNumber=_COUNT,
    targetPort={"type": ["string", "integer"]},
    path=_TEXT,
    interval=_DURATION,
    scrapeTimeout=_DURATION,
)
_POD_MONITOR = _object(
    "selector podMetricsEndpoints",
    "attachMetadata bodySizeLimit convertClassicHistogramsToNHCB fallbackScrapeProtocol jobLabel keepDroppedTargets "
    "labelLimit labelNameLengthLimit labelValueLengthLimit namespaceSelector nativeHistogramBucketLimit "
    "nativeHistogramMinBucketFactor podTargetLabels sampleLimit scrapeClass scrapeClassicHistograms scrapeProtocols "
    "selectorMechanism targetLimit",
    selector=_SELECTOR,
    podMetricsEndpoints=_list(_ENDPOINT),
)

_TRIGGER = _object(
    "type metadata",
    "authenticationRef name",
    type=_TEXT,
    metadata=_TEXTS,
    useCachedMetrics=_FLAG,
    metricType={"enum": ["AverageValue", "Value", "Utilization"]},
)
_PROMETHEUS_TRIGGER = {
    "if": {"properties": {"type": {"const": "prometheus"}}},
    "then": {"properties": {"metadata": {"required": ["serverAddress", "query", "threshold"]}}},
}
_SCALED_OBJECT = _object(
    "scaleTargetRef triggers",
    "advanced fallback",
    scaleTargetRef=_object("name", "apiVersion kind envSourceContainerName", name=_TEXT),
    pollingInterval=_COUNT,
    initialCooldownPeriod=_COUNT,
    cooldownPeriod=_COUNT,
    idleReplicaCount=_COUNT,
    minReplicaCount=_COUNT,
    maxReplicaCount=_COUNT,
    triggers=_list({"allOf": [_TRIGGER, _PROMETHEUS_TRIGGER]}),
)

_FORMAT = _object("name", name=_TEXT, version=_TEXT, autoSelect=_FLAG, priority={"type": "integer", "minimum": 1})
_RUNTIME = _object(
    "containers",
    "affinity builtInAdapter grpcDataEndpoint grpcEndpoint httpDataEndpoint imagePullSecrets nodeSelector replicas "
    "storageHelper tolerations volumes workerSpec",
    annotations=_TEXTS,
    labels=_TEXTS,
    containers=_list(_object("name image", "args command env ports", name=_TEXT) | {"additionalProperties": _ANY}),
    disabled=_FLAG,
    hostIPC=_FLAG,
    multiModel=_FLAG,
    protocolVersions=_list(_PROTOCOL),
    supportedModelFormats=_list(_FORMAT),
)
_MODEL = _object(
    "modelFormat",
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resources "
    "securityContext startupProbe storage volumeMounts workingDir",
    modelFormat=_object("name", name=_TEXT, version=_TEXT),
    runtime=_TEXT,
    runtimeVersion=_TEXT,
    protocolVersion=_PROTOCOL,
    storageUri={"type": "string", "pattern": r"^(gs|s3|pvc|hdfs|https?|hf|file|oci|azure)://\S+$"},
)
_PREDICTOR = _object(
    "model",
    "affinity annotations batcher canaryTrafficPercent containerConcurrency deploymentStrategy imagePullSecrets labels "
    "logger maxReplicas minReplicas nodeSelector scaleMetric scaleTarget serviceAccountName storageUris "
    "terminationGracePeriodSeconds timeout tolerations volumes workerSpec",
    model=_MODEL,
)

SCHEMAS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    (version, kind): _kind(version, kind, spec)
    for version, kind, spec in (
        ("monitoring.coreos.com/v1", "PodMonitor", _POD_MONITOR),
        ("keda.sh/v1alpha1", "ScaledObject", _SCALED_OBJECT),
        ("serving.kserve.io/v1alpha1", "ClusterServingRuntime", _RUNTIME),
        (
            "serving.kserve.io/v1beta1",
            "InferenceService",
            _object("predictor", "explainer transformer", predictor=_PREDICTOR),
        ),
    )
}
"""The schema of each kind by its API version and name."""
