"""PyTorch over a module of linear layers: as TorchScript, and as a package of AOTInductor."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frameworks.framework import Call, Framework, Layer, parameters


def _module(layers: Sequence[Layer]) -> Any:
    import torch

    stack: list[Any] = []
    for weights, biases in layers:
        linear = torch.nn.Linear(*weights.shape)
        linear.weight.data = torch.from_numpy(weights.T.copy())
        linear.bias.data = torch.from_numpy(biases)
        stack += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*stack[:-1]).eval()


def _write_script(path: Path, layers: Sequence[Layer]) -> None:
    import torch

    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):
        torch.jit.script(_module(layers)).save(path)


def _write_package(path: Path, layers: Sequence[Layer]) -> None:
    import torch

    torch.set_num_threads(1)  # as many as this are compiled in
    example = torch.ones(2, layers[0][0].shape[0])
    rows = torch.export.Dim("rows", min=1, max=64)
    with warnings.catch_warnings(action="ignore"), torch.no_grad():
        program = torch.export.export(_module(layers), (example,), dynamic_shapes=({0: rows},))
        torch._inductor.aoti_compile_and_package(program, package_path=str(path))


def _opened_script(path: Path) -> Call:
    import torch

    torch.set_num_threads(1)
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):
        return _inferring(torch.jit.load(path))


def _opened_package(path: Path) -> Call:
    import torch

    torch.set_num_threads(1)
    return _inferring(torch._inductor.aoti_load_package(str(path), run_single_threaded=True))


def _inferring(module: Any) -> Call:
    import torch

    def call(array: Any) -> object:
        with torch.inference_mode():
            return module(torch.from_numpy(array))

    return call


TORCH = Framework(
    "torch",
    "model.pt",
    f'platform: "pytorch_libtorch"\n{parameters(INTRA_OP_THREAD_COUNT="1", INTER_OP_THREAD_COUNT="1")}',
    _write_script,
    _opened_script,
    "naiad_torch",
)
AOTI = Framework(
    "aoti",
    "model.pt2",
    'platform: "torch_aoti"\n'
    + parameters(INTRA_OP_THREAD_COUNT="1", INTER_OP_THREAD_COUNT="1", RELEASE_INTERPRETER_LOCK="1"),
    _write_package,
    _opened_package,
    "naiad_torch",
)
