"""The frameworks that the benchmark measures, by name."""

from frameworks.framework import Framework
from frameworks.onnx_graph import ONNX
from frameworks.openvino_model import OPENVINO
from frameworks.saved_model import TENSORFLOW
from frameworks.torch_modules import AOTI, TORCH

FRAMEWORKS: dict[str, Framework] = {each.name: each for each in (ONNX, TORCH, AOTI, TENSORFLOW, OPENVINO)}
