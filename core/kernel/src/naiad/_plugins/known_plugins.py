"""The published distributions and what they contribute, so that an unknown name is answered with what to install.

A test holds this table against what the distributions of the workspace really offer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from naiad_config import ModelConfig
from naiad_config.installing import install_command
from naiad_config.normalisation import is_ensemble, is_isolated


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    """A published distribution, the names of its contributions and request parameters by kind, and its extra."""

    distribution: str
    names: Mapping[str, str]
    extra: str = ""

    @property
    def install(self) -> str:
        """What to give to `pip install`."""
        return f"{self.distribution}[{self.extra}]" if self.extra else self.distribution


KNOWN_PLUGINS = (
    KnownPlugin("naiad-cache", {"service": "cache", "option": "cache-config response-cache-byte-size"}),
    KnownPlugin("naiad-cache-local", {"cache": "local"}),
    KnownPlugin("naiad-cache-redis", {"cache": "redis"}),
    KnownPlugin("naiad-caffe2", {"backend": "caffe2"}, extra="cpu"),
    KnownPlugin("naiad-custom", {"backend": "custom python", "option": "backend-directory", "service": "custom"}),
    KnownPlugin(
        "naiad-dashboard",
        {
            "frontend": "dashboard",
            "service": "dashboard",
            "option": "allow-dashboard dashboard-address dashboard-allowed-hosts dashboard-port dashboard-root-path "
            "dashboard-token-file",
        },
    ),
    KnownPlugin("naiad-explain", {"parameter": "naiad_explain", "option": "allow-explain"}),
    KnownPlugin(
        "naiad-grpc",
        {
            "frontend": "grpc",
            "option": "allow-grpc grpc-address grpc-connection-window grpc-handshake-timeout "
            "grpc-header-forward-pattern grpc-http2-max-ping-strikes grpc-http2-max-pings-without-data "
            "grpc-http2-min-recv-ping-interval-without-data grpc-infer-response-compression-level "
            "grpc-keepalive-permit-without-calls grpc-keepalive-time grpc-keepalive-timeout grpc-max-calls "
            "grpc-max-concurrent-streams grpc-max-connection-age grpc-max-connection-age-grace "
            "grpc-max-connection-idle grpc-max-connections grpc-max-message-size grpc-max-response-size grpc-port "
            "grpc-restricted-protocol grpc-root-cert grpc-server-cert grpc-server-key grpc-transport grpc-use-ssl "
            "grpc-use-ssl-mutual reuse-grpc-port",
        },
    ),
    KnownPlugin(
        "naiad-http",
        {
            "frontend": "http",
            "option": "allow-http http-address http-allow-origin http-body-seconds http-head-seconds "
            "http-header-forward-pattern http-idle-seconds http-max-connections http-max-input-size "
            "http-max-json-output http-max-pipelined-bytes http-port http-restricted-api http-root-cert "
            "http-server-cert http-server-key http-use-ssl http-use-ssl-mutual reuse-http-port",
        },
    ),
    KnownPlugin("naiad-loop-handoff", {"worker": "loop_handoff event_loop", "option": "loop-handoff"}),
    KnownPlugin(
        "naiad-metrics",
        {
            "frontend": "metrics",
            "service": "metrics",
            "option": "allow-cpu-metrics allow-gpu-metrics allow-metrics metrics-address metrics-config "
            "metrics-interval-ms metrics-port",
        },
    ),
    KnownPlugin("naiad-model-calls", {"service": "model-calls"}),
    KnownPlugin("naiad-onnx", {"backend": "onnxruntime"}, extra="cpu"),
    KnownPlugin("naiad-openvino", {"backend": "openvino"}, extra="cpu"),
    KnownPlugin(
        "naiad-process-workers",
        {"worker": "process", "service": "process-workers", "option": "allow-model-requirements isolation"},
    ),
    KnownPlugin("naiad-rate-limiter", {"option": "rate-limit rate-limit-resource"}),
    KnownPlugin(
        "naiad-repository-agents",
        {
            "repository agent": "checksum signature",
            "option": "require-signed signature-certificates signature-public-key",
        },
    ),
    KnownPlugin("naiad-scheduler-dynamic", {"scheduler": "dynamic dynamic_batching"}),
    KnownPlugin("naiad-scheduler-ensemble", {"servable": "ensemble"}),
    KnownPlugin("naiad-scheduler-sequence", {"scheduler": "sequence sequence_batching"}),
    KnownPlugin(
        "naiad-shared-memory",
        {"service": "shared-memory", "option": "allow-client-shm max-shared-memory-regions shared-memory-lending"},
    ),
    KnownPlugin("naiad-store", {"repository scheme": "as gs hf s3", "option": "store-cache store-cache-size"}),
    KnownPlugin("naiad-tensorflow", {"backend": "tensorflow"}, extra="cpu"),
    KnownPlugin("naiad-tensorrt", {"backend": "tensorrt"}, extra="tensorrt"),
    KnownPlugin("naiad-torch", {"backend": "pytorch"}, extra="cpu"),
    KnownPlugin(
        "naiad-tracing",
        {
            "service": "tracing",
            "option": "trace-config trace-count trace-file trace-level trace-log-frequency trace-rate",
        },
    ),
    KnownPlugin("naiad-warmup", {"warmup": "samples"}),
)


@dataclass(frozen=True, slots=True)
class ConfigurationNeed:
    """A part of model configurations that takes the contribution `name` of that `kind`; `noun` is for messages."""

    kind: str
    name: str
    noun: str
    is_in: Callable[[ModelConfig], bool]


def _section(name: str) -> Callable[[ModelConfig], bool]:
    """Whether a configuration has the section, and does not disable it."""
    return lambda config: bool(section := getattr(config, name)) and bool(getattr(section, "enable", True))


CONFIGURATION_NEEDS = (
    ConfigurationNeed("option", "cache-config", "a response cache", _section("response_cache")),
    ConfigurationNeed("warmup", "samples", "a warm-up", _section("model_warmup")),
    ConfigurationNeed("servable", "ensemble", "an ensemble", is_ensemble),
    ConfigurationNeed("codec", "sequence", "sequence_batching", _section("sequence_batching")),
    ConfigurationNeed("worker", "process", "isolation", is_isolated),
)
"""Without the plugin, an option or a warm-up is ignored with a warning; a model that takes anything else is refused."""


def needs_of(config: ModelConfig, *kinds: str) -> list[ConfigurationNeed]:
    """What that configuration takes of these kinds."""
    return [need for need in CONFIGURATION_NEEDS if need.kind in kinds and need.is_in(config)]


_TABLE = {(kind, name): each for each in KNOWN_PLUGINS for kind, names in each.names.items() for name in names.split()}


def names_of(kind: str) -> set[str]:
    """The names of all known contributions of that kind."""
    return {name for each, name in _TABLE if each == kind}


def what_to_install(kind: str, name: str) -> str:
    """What to give to `pip install` for a thing and all that it needs, "" when no known distribution offers it."""
    return plugin.install if (plugin := _TABLE.get((kind, name))) else ""


def where_to_get(kind: str, name: str, installed: Mapping[str, str]) -> str:
    """A sentence with the next step for a missing thing, "" when no known distribution offers it.

    `installed` maps the distributions that are installed to why each was skipped ("" when it was not).
    """
    if not (plugin := _TABLE.get((kind, name))):
        return ""
    if skipped := installed.get(plugin.distribution):
        return f"{plugin.distribution} would offer it, but was skipped: {skipped.rstrip('.')}."
    return f"It comes with {plugin.distribution}: {install_command(plugin.install)}."
