"""Parameters of a configuration for OpenVINO: device, threads, streams, precision and batching."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from naiad.errors import Problem
from naiad.options import boolean
from naiad_config import ModelConfig
from naiad_kit.backends.parameters import KnownNames, ParameterReader, positive_count

_OLD_NAMES = {
    "CPU_THREADS_NUM": "INFERENCE_NUM_THREADS",
    "ENFORCE_BF16": "HINT_BF16",
    "CPU_BIND_THREAD": "ENABLE_CPU_PINNING",
    "CPU_THROUGHPUT_STREAMS": "NUM_STREAMS",
    "SKIP_DYNAMIC_BATCHSIZE": "SKIP_OV_DYNAMIC_BATCHSIZE",
}
NAMES = KnownNames(
    "OpenVINO",
    (
        "PERFORMANCE_HINT",
        "CPU_EXTENSION_PATH",
        "INFERENCE_NUM_THREADS",
        "COMPILATION_NUM_THREADS",
        "HINT_BF16",
        "NUM_STREAMS",
        "SKIP_OV_DYNAMIC_BATCHSIZE",
        "ENABLE_BATCH_PADDING",
        "RESHAPE_IO_LAYERS",
        "TARGET_DEVICE",
        "ENABLE_CPU_PINNING",
    ),
    old=tuple(_OLD_NAMES),
)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How to run a model.

    `properties` go to OpenVINO as they are; `extension` is a library with operators of the user's own, relative to the
    model's folder. `keeps_batch` leaves a fixed batch dimension as it is, `pads` fills a batch up to it, `reshapes`
    gives the model the dims of the configuration.
    """

    device: str = "CPU"
    properties: Mapping[str, str | int] = field(default_factory=dict)
    extension: str = ""
    keeps_batch: bool = False
    pads: bool = False
    reshapes: bool = False


def run_settings(config: ModelConfig, settings: Mapping[str, str]) -> RunSettings:
    """The settings of a model; `settings` are the `--backend-config` values.

    Raises ConfigError with all invalid values, and names that are misspelt.
    """
    reader = ParameterReader(config, settings, _OLD_NAMES)
    properties: dict[str, str | int] = {}
    parsers: tuple[tuple[str, Callable[[str], str | int]], ...] = (
        ("PERFORMANCE_HINT", _hint),
        ("INFERENCE_NUM_THREADS", positive_count),
        ("COMPILATION_NUM_THREADS", positive_count),
        ("NUM_STREAMS", _streams),
        ("ENABLE_CPU_PINNING", _pinning),
    )
    for key, parse in parsers:
        value = reader.read(key, parse, None)
        if value is not None:
            properties[key] = value
    half = reader.read("HINT_BF16", boolean, None)
    if half is not None:  # OpenVINO's own choice is BF16 on a processor that multiplies matrices of it
        properties["INFERENCE_PRECISION_HINT"] = "bf16" if half else "f32"
    chosen = RunSettings(
        device=reader.texts.get("TARGET_DEVICE", "") or "CPU",
        properties=properties,
        extension=reader.texts.get("CPU_EXTENSION_PATH", ""),
        keeps_batch=reader.read("SKIP_OV_DYNAMIC_BATCHSIZE", boolean, False),
        pads=reader.read("ENABLE_BATCH_PADDING", boolean, False),
        reshapes=reader.read("RESHAPE_IO_LAYERS", boolean, False),
    )
    reader.problems += _accelerators(config)
    reader.refuse_misspelt(NAMES)
    reader.finish()
    return chosen


def _accelerators(config: ModelConfig) -> Iterator[Problem]:
    """OpenVINO is one itself, for others; it takes none."""
    policy = config.optimization
    accelerators = policy.execution_accelerators if policy is not None else None
    for kind in ("gpu", "cpu"):
        for index, accelerator in enumerate(getattr(accelerators, f"{kind}_execution_accelerator", ())):
            path = f"optimization.execution_accelerators.{kind}_execution_accelerator[{index}]"
            hint = "remove it; the parameter TARGET_DEVICE names another device"
            yield Problem(f"OpenVINO has no execution accelerator '{accelerator.name}'", path, hint=hint)


def _pinning(text: str) -> str | int:
    return "YES" if text.strip().upper() in ("NUMA", "HYBRID_AWARE") or boolean(text) else "NO"


def _hint(text: str) -> str | int:
    known = ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT")
    if text.upper() not in known:
        raise ValueError(f"it must be {', '.join(known[:-1])} or {known[-1]}")
    return text.upper()


def _streams(text: str) -> str | int:
    word = text.upper().removeprefix("CPU_THROUGHPUT_")
    return word if word in ("AUTO", "NUMA") else positive_count(text)
