"""Reading what a configuration says about running a model with OpenVINO."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from naiad.config import ModelConfig
from naiad.config.mistakes import nearest
from naiad.errors import ConfigError, Problem
from naiad.options import boolean

_T = TypeVar("_T")
_D = TypeVar("_D")

_OLD_NAMES = {
    "CPU_THREADS_NUM": "INFERENCE_NUM_THREADS",
    "ENFORCE_BF16": "HINT_BF16",
    "CPU_BIND_THREAD": "ENABLE_CPU_PINNING",
    "CPU_THROUGHPUT_STREAMS": "NUM_STREAMS",
    "SKIP_DYNAMIC_BATCHSIZE": "SKIP_OV_DYNAMIC_BATCHSIZE",
}
_KNOWN = (
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


def run_settings(config: ModelConfig) -> RunSettings:
    """The settings of a model. Raises ConfigError with all values that make no sense.

    Keys in capitals are OpenVINO's, and one that is not known is an error; all others belong to somebody else.
    """
    reader = _Reader(config)
    properties: dict[str, str | int] = {}
    for key, parse in (
        ("PERFORMANCE_HINT", _hint),
        ("INFERENCE_NUM_THREADS", _count),
        ("COMPILATION_NUM_THREADS", _count),
        ("NUM_STREAMS", _streams),
        ("ENABLE_CPU_PINNING", _pinning),
    ):
        value = reader.read(key, parse, None)
        if value is not None:
            properties[key] = value
    if reader.read("HINT_BF16", _yes, False):
        properties["INFERENCE_PRECISION_HINT"] = "bf16"
    settings = RunSettings(
        device=reader.texts.get("TARGET_DEVICE", "") or "CPU",
        properties=properties,
        extension=reader.texts.get("CPU_EXTENSION_PATH", ""),
        keeps_batch=reader.read("SKIP_OV_DYNAMIC_BATCHSIZE", _yes, False),
        pads=reader.read("ENABLE_BATCH_PADDING", _yes, False),
        reshapes=reader.read("RESHAPE_IO_LAYERS", _yes, False),
    )
    reader.refuse_unknown()
    if reader.problems:
        raise ConfigError(reader.problems)
    return settings


class _Reader:
    """Reads the parameters of one configuration, by their names of today, and gathers what is wrong with them."""

    def __init__(self, config: ModelConfig) -> None:
        self._written = {_OLD_NAMES.get(key, key): key for key in config.parameters}
        self.texts = {name: config.parameters[key].string_value for name, key in self._written.items()}
        self.problems: list[Problem] = []

    def read(self, key: str, parse: Callable[[str], _T], default: _D) -> _T | _D:
        text = self.texts.get(key, "")
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            written = self._written[key]
            self.problems.append(Problem(f"'{written}' cannot be '{text}': {error}", f"parameters[{written}]"))
            return default

    def refuse_unknown(self) -> None:
        for key in self.texts:
            if key.isupper() and key not in _KNOWN:
                near = nearest(key, (*_KNOWN, *_OLD_NAMES), 0.6)
                hint = f"did you mean '{near}'?" if near else f"known are {', '.join(_KNOWN)}"
                self.problems.append(Problem(f"OpenVINO has no parameter '{key}'", f"parameters[{key}]", hint=hint))


def _yes(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("yes", "on"):
        return True
    return lowered not in ("no", "off") and boolean(lowered)


def _pinning(text: str) -> str | int:
    return "YES" if text.strip().upper() in ("NUMA", "HYBRID_AWARE") or _yes(text) else "NO"


def _hint(text: str) -> str | int:
    known = ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT")
    if text.upper() not in known:
        raise ValueError(f"it must be {', '.join(known[:-1])} or {known[-1]}")
    return text.upper()


def _streams(text: str) -> str | int:
    word = text.upper().removeprefix("CPU_THROUGHPUT_")
    return word if word in ("AUTO", "NUMA") else _count(text)


def _count(text: str) -> str | int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError("it must be a whole number") from None
    if number < 1:
        raise ValueError("it must be at least 1")
    return number
