"""Options of Triton that `naiad serve` takes although they change nothing, and the deprecated `--strict-model-config`.

An option that a plugin brings is the plugin's; only the others are read here.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from naiad.options import Option, boolean, port, positive

_ONE_LOOP = "one event loop serves all connections"
_NO_SAGEMAKER = "there is no SageMaker frontend"
_NO_VERTEX = "there is no Vertex AI frontend"
_OWN_MEMORY = "frameworks allocate the memory of GPUs"

_STRICT = Option("strict-model-config", "", "deprecated: use --disable-auto-complete-config", boolean, "BOOL")

WITHOUT_EFFECT: tuple[Option, ...] = (
    Option("buffer-manager-thread-count", 0, "tensors are not copied by threads of their own", int, "N"),
    Option("cache-directory", "", "caches are plugins, see naiad plugins", metavar="DIR"),
    Option("cuda-memory-pool-byte-size", (), _OWN_MEMORY, metavar="GPU:BYTES", repeatable=True),
    Option("cuda-virtual-address-size", (), _OWN_MEMORY, metavar="GPU:BYTES", repeatable=True),
    Option("enable-peer-access", True, "frameworks choose how GPUs reach each other", boolean),
    Option("grpc-infer-allocation-pool-size", 8, "nothing of a request is kept for the next", int, "N"),
    Option("grpc-infer-thread-count", 2, _ONE_LOOP, positive, "N"),
    Option("grpc-max-response-pool-size", 2**31 - 1, "a client that reads slowly holds its model back", positive, "N"),
    Option(
        "host-policy",
        (),
        "threads are bound to no processors; bind the process with taskset or numactl",
        metavar="POLICY,SETTING=VALUE",
        repeatable=True,
    ),
    Option("http-thread-count", 8, _ONE_LOOP, positive, "N"),
    Option("min-supported-compute-capability", 6.0, "CUDA_VISIBLE_DEVICES chooses the GPUs", float, "CAPABILITY"),
    Option(
        "model-load-gpu-limit",
        (),
        "a model that does not fit into the memory of its GPU fails to load",
        metavar="GPU:FRACTION",
        repeatable=True,
    ),
    Option("model-namespacing", False, "a model name that two repositories have is not served", boolean),
    Option("pinned-memory-pool-byte-size", 2**28, "backends pin the memory that they copy from", int, "BYTES"),
    Option("repoagent-directory", "", "repository agents are plugins, see naiad plugins", metavar="DIR"),
    Option("allow-sagemaker", False, _NO_SAGEMAKER, boolean),
    Option("sagemaker-port", 8080, _NO_SAGEMAKER, port, "PORT"),
    Option("sagemaker-safe-port-range", "", _NO_SAGEMAKER, metavar="PORT-PORT"),
    Option("sagemaker-thread-count", 8, _NO_SAGEMAKER, positive, "N"),
    Option("allow-vertex-ai", False, _NO_VERTEX, boolean),
    Option("vertex-ai-default-model", "", _NO_VERTEX, metavar="NAME"),
    Option("vertex-ai-port", 8080, _NO_VERTEX, port, "PORT"),
    Option("vertex-ai-thread-count", 8, _NO_VERTEX, positive, "N"),
)
"""Options that change nothing; the help of each says why."""


def triton_options(known: Collection[str]) -> Sequence[Option]:
    """The options of this module that have no name of those `known`, which the kernel and plugins declare."""
    return [option for option in (_STRICT, *WITHOUT_EFFECT) if option.name not in known]


def take_triton_options(values: dict[str, Any], options: Sequence[Option]) -> Iterator[str]:
    """Take the values of `options`, those of `triton_options`, out of `values`, and give a warning for each.

    A value that is the default asks for nothing, and gives no warning.
    """
    for option in options:
        value = values.pop(option.name, option.default)
        if value == option.default:
            continue
        if option is _STRICT:
            yield from _strict_model_config(values, value)
        else:
            yield f"--{option.name} has no effect: {option.help}"


def _strict_model_config(values: dict[str, Any], strict: bool) -> Iterator[str]:
    new = "disable-auto-complete-config"
    counts = values.setdefault(new, strict)
    yield f"--{_STRICT.name} is deprecated; write --{new}. What counts is --{new}={str(counts).lower()}"
