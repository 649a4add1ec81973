"""Which backend reads which model file and platform, whether its plugin is installed or not."""

from dataclasses import dataclass


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
    KnownFormat("model.saved_model", "openvino"),
    KnownFormat("model.tflite", "openvino"),
    KnownFormat("model.pdmodel", "openvino"),
    KnownFormat("model.py", "python"),
)
"""In the order of looking for them: the first that is there decides."""


def backend_of_platform(platform: str) -> str:
    """The well-known backend that serves a platform, "" when there is none."""
    return next((known.backend for known in KNOWN_FORMATS if platform and known.platform == platform), "")
