"""Which backend reads which model file and platform, whether its plugin is installed or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from naiad._kernel.known_plugins import where_to_get


@dataclass(frozen=True, slots=True)
class KnownFormat:
    """A file or folder in a version folder that marks the model as a backend's, with its platform ("" for none)."""

    file: str
    backend: str
    platform: str = ""


KNOWN_FORMATS = (
    KnownFormat("model.savedmodel", "tensorflow", "tensorflow_savedmodel"),
    KnownFormat("model.graphdef", "tensorflow", "tensorflow_graphdef"),
    KnownFormat("model.plan", "tensorrt", "tensorrt_plan"),
    KnownFormat("model.onnx", "onnxruntime", "onnxruntime_onnx"),
    KnownFormat("model.xml", "openvino"),
    KnownFormat("model.pt", "pytorch", "pytorch_libtorch"),
    KnownFormat("model.pt2", "pytorch", "torch_aoti"),
    KnownFormat("model.netdef", "caffe2", "caffe2_netdef"),
    KnownFormat("libcustom.so", "custom", "custom"),
    KnownFormat("model.py", "python"),
)
"""In the order of looking for them: the first that is there decides."""

_PLANNED: Mapping[str, str] = MappingProxyType(
    {
        "tensorrt": "naiad-tensorrt",
    }
)
"""The distributions of backends that this workspace does not hold yet, under the names that are kept for them."""


def where_backend_comes_from(backend: str, installed: Mapping[str, str] = MappingProxyType({})) -> str:
    """A sentence with what to install for a backend, "" when we know no distribution of it.

    `installed` maps the distributions that are installed to why each was skipped ("" when it was not).
    """
    known = where_to_get("backend", backend, installed)
    if known or backend not in _PLANNED:
        return known
    install = _PLANNED[backend]
    return f"It comes with {install.partition('[')[0]}: pip install '{install}'."


def backend_of_platform(platform: str) -> str:
    """The well-known backend that serves a platform, "" when there is none."""
    return next((known.backend for known in KNOWN_FORMATS if platform and known.platform == platform), "")
