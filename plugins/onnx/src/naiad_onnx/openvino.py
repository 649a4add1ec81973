"""Parameters of the execution accelerator `openvino`, as options of ONNX Runtime's OpenVINO provider. Pure.

The provider takes some mistakes for defaults (an unknown device for the CPU) and falls back to the CPU for others, so
all values are checked here.
"""

import json
import re
from collections.abc import Callable, Mapping

from naiad.options import boolean
from naiad_config.mistakes import nearest
from naiad_kit.backends.parameters import positive_count

_DEVICE = r"(CPU|NPU|GPU(\.\d+)?)"
_DEVICES = re.compile(rf"{_DEVICE}|(AUTO|HETERO|MULTI):{_DEVICE}(,{_DEVICE})*")
_STREAMS = 8
_REFUSED = {
    "device_id": "device_type says on which device",
    "context": "it is an address in memory",
    "enable_causallm": "its models keep state that the server does not know of",
}


def openvino_options(parameters: Mapping[str, str]) -> tuple[dict[str, str], Mapping[str, str]]:
    """The options, and by parameter what is wrong with it.

    Off the CPU OpenVINO computes in less than the model's precision where it is faster; here it does when asked to.
    """
    options: dict[str, str] = {"device_type": "CPU"}
    mistakes: dict[str, str] = {}
    for key, text in parameters.items():
        if key not in _VALUES:
            mistakes[key] = _unknown(key)
            continue
        try:
            options[key] = _VALUES[key](text)
        except ValueError as error:
            mistakes[key] = f"'{key}' cannot be '{text}': {error}"
    if options["device_type"] != "CPU":
        options.setdefault("precision", "ACCURACY")
    return options, mistakes


def _unknown(key: str) -> str:
    if key in _REFUSED:
        return f"'{key}' cannot be given: {_REFUSED[key]}"
    near = nearest(key, _VALUES)
    return f"unknown parameter '{key}'; " + (f"did you mean '{near}'?" if near else f"there are {', '.join(_VALUES)}")


def _device(text: str) -> str:
    if not _DEVICES.fullmatch(text):
        raise ValueError("it must be CPU, GPU, GPU.1, NPU, or several of them as AUTO:GPU,CPU, HETERO:… or MULTI:…")
    return text


def _streams(text: str) -> str:
    if not 1 <= positive_count(text) <= _STREAMS:
        raise ValueError(f"it must be from 1 to {_STREAMS}")
    return text


def _threads(text: str) -> str:
    return str(positive_count(text))


def _switch(text: str) -> str:
    """The provider takes True and False, and no numbers."""
    return str(boolean(text))


def _configuration(text: str) -> str:
    try:
        properties = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it must be JSON ({error})") from error
    if not isinstance(properties, dict) or not all(isinstance(each, dict) for each in properties.values()):
        raise ValueError('it must be properties by device, as {"CPU": {"ENABLE_HYPER_THREADING": "NO"}}')
    return text


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"it must be one of {', '.join(words)}")
        return text

    return parse


_VALUES: Mapping[str, Callable[[str], str]] = {
    "device_type": _device,
    "precision": _one_of("FP32", "FP16", "ACCURACY"),
    "num_of_threads": _threads,
    "num_streams": _streams,
    "cache_dir": str,
    "load_config": _configuration,
    "model_priority": _one_of("LOW", "MEDIUM", "HIGH", "DEFAULT"),
    "enable_qdq_optimizer": _switch,
    "enable_opencl_throttling": _switch,
    "disable_dynamic_shapes": _switch,
    "reshape_input": str,
    "layout": str,
}
