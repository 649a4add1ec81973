"""Which published distribution offers what, so that an unknown name is answered with what to install.

A test holds this table against what the distributions of the workspace really offer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    """A published distribution, how to install it, and the names by which its things are asked for.

    `parameters` are those of requests that its stages offer.
    """

    distribution: str
    install: str
    backends: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    frontends: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    servables: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


KNOWN_PLUGINS = (
    KnownPlugin(
        "naiad-cache",
        "naiad-cache",
        services=("cache",),
        options=("cache-config", "cache-directory", "response-cache-byte-size"),
    ),
    KnownPlugin("naiad-cache-local", "naiad-cache-local", caches=("local",)),
    KnownPlugin("naiad-cache-redis", "naiad-cache-redis", caches=("redis",)),
    KnownPlugin("naiad-caffe2", "naiad-caffe2[cpu]", backends=("caffe2",)),
    KnownPlugin("naiad-custom", "naiad-custom", backends=("custom", "python")),
    KnownPlugin("naiad-explain", "naiad-explain", parameters=("explain",), options=("allow-explain",)),
    KnownPlugin(
        "naiad-grpc",
        "naiad-grpc",
        frontends=("grpc",),
        options=(
            "allow-grpc",
            "grpc-address",
            "grpc-handshake-timeout",
            "grpc-header-forward-pattern",
            "grpc-http2-max-ping-strikes",
            "grpc-http2-max-pings-without-data",
            "grpc-http2-min-recv-ping-interval-without-data",
            "grpc-infer-allocation-pool-size",
            "grpc-infer-response-compression-level",
            "grpc-infer-thread-count",
            "grpc-keepalive-permit-without-calls",
            "grpc-keepalive-time",
            "grpc-keepalive-timeout",
            "grpc-max-calls",
            "grpc-max-concurrent-streams",
            "grpc-max-connection-age",
            "grpc-max-connection-age-grace",
            "grpc-max-connection-idle",
            "grpc-max-connections",
            "grpc-max-message-size",
            "grpc-max-response-pool-size",
            "grpc-max-response-size",
            "grpc-port",
            "grpc-restricted-protocol",
            "grpc-root-cert",
            "grpc-server-cert",
            "grpc-server-key",
            "grpc-use-ssl",
            "grpc-use-ssl-mutual",
            "reuse-grpc-port",
        ),
    ),
    KnownPlugin(
        "naiad-http",
        "naiad-http",
        frontends=("http",),
        options=(
            "allow-http",
            "http-address",
            "http-body-seconds",
            "http-head-seconds",
            "http-header-forward-pattern",
            "http-idle-seconds",
            "http-max-connections",
            "http-max-input-size",
            "http-max-json-output",
            "http-max-pipelined-bytes",
            "http-port",
            "http-restricted-api",
            "http-root-cert",
            "http-server-cert",
            "http-server-key",
            "http-thread-count",
            "http-use-ssl",
            "http-use-ssl-mutual",
            "reuse-http-port",
        ),
    ),
    KnownPlugin("naiad-loop-handoff", "naiad-loop-handoff", options=("loop-handoff",)),
    KnownPlugin(
        "naiad-metrics",
        "naiad-metrics",
        frontends=("metrics",),
        services=("metrics",),
        options=(
            "allow-cpu-metrics",
            "allow-gpu-metrics",
            "allow-metrics",
            "metrics-address",
            "metrics-config",
            "metrics-interval-ms",
            "metrics-port",
        ),
    ),
    KnownPlugin("naiad-onnx", "naiad-onnx[cpu]", backends=("onnxruntime",)),
    KnownPlugin("naiad-openvino", "naiad-openvino[cpu]", backends=("openvino",)),
    KnownPlugin("naiad-rate-limiter", "naiad-rate-limiter", options=("rate-limit", "rate-limit-resource")),
    KnownPlugin("naiad-scheduler-dynamic", "naiad-scheduler-dynamic", schedulers=("dynamic", "dynamic_batching")),
    KnownPlugin("naiad-scheduler-ensemble", "naiad-scheduler-ensemble", servables=("ensemble",)),
    KnownPlugin("naiad-scheduler-sequence", "naiad-scheduler-sequence", schedulers=("sequence", "sequence_batching")),
    KnownPlugin(
        "naiad-shared-memory",
        "naiad-shared-memory",
        services=("shared-memory",),
        options=("allow-client-shm", "max-shared-memory-regions", "shared-memory-lending"),
    ),
    KnownPlugin("naiad-tensorflow", "naiad-tensorflow[cpu]", backends=("tensorflow",)),
    KnownPlugin("naiad-tensorrt", "naiad-tensorrt[tensorrt]", backends=("tensorrt",)),
    KnownPlugin("naiad-torch", "naiad-torch[cpu]", backends=("pytorch",)),
    KnownPlugin(
        "naiad-tracing",
        "naiad-tracing",
        services=("tracing",),
        options=("trace-config", "trace-count", "trace-file", "trace-level", "trace-log-frequency", "trace-rate"),
    ),
)


def _table() -> Mapping[tuple[str, str], KnownPlugin]:
    table = {}
    for plugin in KNOWN_PLUGINS:
        kinds = {"backend": plugin.backends, "scheduler": plugin.schedulers, "frontend": plugin.frontends}
        kinds |= {"cache": plugin.caches, "service": plugin.services, "parameter": plugin.parameters}
        kinds["servable"] = plugin.servables
        kinds["option"] = plugin.options
        for kind, names in kinds.items():
            table.update({(kind, name): plugin for name in names})
    return MappingProxyType(table)


_TABLE = _table()


def what_to_install(kind: str, name: str) -> str:
    """What to give to `pip install` for a thing and all that it needs, "" when no known distribution offers it."""
    plugin = _TABLE.get((kind, name))
    return plugin.install if plugin is not None else ""


def where_to_get(kind: str, name: str, installed: Mapping[str, str]) -> str:
    """A sentence with the next step for a missing thing, "" when no known distribution offers it.

    `installed` maps the distributions that are installed to why each was skipped ("" when it was not).
    """
    plugin = _TABLE.get((kind, name))
    if plugin is None:
        return ""
    if installed.get(plugin.distribution):
        return f"{plugin.distribution} would offer it, but was skipped: {installed[plugin.distribution].rstrip('.')}."
    return f"It comes with {plugin.distribution}: pip install '{plugin.install}'."
