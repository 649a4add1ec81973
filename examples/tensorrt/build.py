"""Builds engines of TensorRT from ONNX files; TensorRT for RTX does so without a GPU, TensorRT itself for its own GPU.

python examples/build.py                # writes the ONNX model that is taken without arguments
python examples/tensorrt/build.py       # writes examples/tensorrt/models/shapes_trt/1/model.plan
naiad serve examples/tensorrt/models    # on a machine with an NVIDIA GPU
"""

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent / "models" / "shapes" / "1" / "model.onnx"
ENGINE = HERE / "models" / "shapes_trt" / "1" / "model.plan"
BATCHES = ((1, 4, 8), (1, 32, 64))
"""The least, best and greatest batch of each optimisation profile."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("onnx", nargs="?", type=Path, default=MODEL, help=f"the ONNX file (default: {MODEL})")
    parser.add_argument("plan", nargs="?", type=Path, default=ENGINE, help=f"the engine (default: {ENGINE})")
    arguments = parser.parse_args()
    trt = builder()
    if trt is None:
        print("no builder of TensorRT is installed: pip install 'naiad-tensorrt[tensorrt]', or 'naiad-tensorrt[rtx]'")
        return 1
    plan = build(trt, arguments.onnx.read_bytes())
    arguments.plan.parent.mkdir(parents=True, exist_ok=True)
    arguments.plan.write_bytes(plan)
    print(f"wrote {arguments.plan} ({len(plan):,} bytes) with {trt.__name__} {trt.__version__}")
    return 0


def builder() -> ModuleType | None:
    """TensorRT, or TensorRT for RTX; None where neither is installed. The lean runtime builds nothing."""
    names = ("tensorrt", "tensorrt_rtx", "tensorrt_rtx_bindings")
    return next((importlib.import_module(name) for name in names if importlib.util.find_spec(name)), None)


def build(trt: ModuleType, model: bytes, batches: Sequence[Sequence[int]] = BATCHES) -> bytes:
    """An engine of an ONNX model, of which the first dim of each input varies. Raises SystemExit with what is wrong."""
    making = trt.Builder(trt.Logger(trt.Logger.WARNING))
    network = making.create_network(0)
    parser = trt.OnnxParser(network, trt.Logger(trt.Logger.WARNING))
    if not parser.parse(model):
        errors = (parser.get_error(index) for index in range(parser.num_errors))
        raise SystemExit("\n".join(f"{error.node_operator()}: {error.desc()}" for error in errors))
    config = making.create_builder_config()
    for bounds in batches:
        config.add_optimization_profile(_profile(making, network, bounds))
    plan = making.build_serialized_network(network, config)
    if plan is None:
        raise SystemExit("TensorRT cannot build this model; its log above says why")
    return bytes(plan)


def _profile(making: Any, network: Any, bounds: Sequence[int]) -> Any:
    profile = making.create_optimization_profile()
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        profile.set_shape(tensor.name, *((rows, *tuple(tensor.shape)[1:]) for rows in bounds))
    return profile


if __name__ == "__main__":
    sys.exit(main())
