"""TorchScript and exported programs go through the conformance suite of backends."""

from typing import Any

import pytest
import torch

import naiad_scheduler_dynamic
import naiad_torch
from naiad_testing.backend_suite import DATATYPES, BackendSuite, SuiteModel, backend_cases
from naiad_testing.workbench import tensor_entry
from naiad_torch.backend import TorchBackend

from .conftest import Accumulator, AddSub, Gather, Identity, Ragged, WithDefault, write_export, write_script

AOTI = 'platform: "torch_aoti"\n'
ROWS, COLUMNS = torch.export.Dim("rows", min=1, max=64), torch.export.Dim("columns", max=4096)
SEQUENCES = """
    max_batch_size: 4
    sequence_batching {
      control_input { name: "start__1" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
      state { input_name: "state__2" output_name: "OUTPUT__1" data_type: TYPE_FP32 dims: [ 1 ] }
    }
"""
RAGGED = """
    max_batch_size: 8
    input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
    output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 1 ] }
    batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_INT32 source_input: "x" }
"""


def script(module: Any, inputs: str, outputs: str, config: str = "", **dims: str) -> SuiteModel:
    """A TorchScript; `dims` are datatype and dims of the tensors that its configuration has."""
    kinds = dict.fromkeys(inputs.split(), "input") | dict.fromkeys(outputs.split(), "output")
    entries = [tensor_entry(kinds[name], name, *written.split()) for name, written in dims.items()]
    return SuiteModel(
        lambda workbench: write_script(workbench, module),
        tuple(inputs.split()),
        tuple(outputs.split()),
        'platform: "pytorch_libtorch"\n' + (config or "max_batch_size: 8\n") + "".join(entries),
    )


def exported(module: Any, examples: tuple[Any, ...], inputs: str, outputs: str, config: str = "", **shapes: Any) -> Any:
    shapes = {name: {0: ROWS, **shapes.get(name, {})} for name in inputs.replace("__1", "").replace("__2", "").split()}
    return SuiteModel(
        lambda workbench: write_export(workbench, module, examples, shapes=shapes),
        tuple(inputs.split()),
        tuple(outputs.split()),
        config,
    )


def script_identity(datatype: str, dims: str) -> SuiteModel:
    return script(Identity(), "x", "OUTPUT__0", x=f"{datatype} {dims}", OUTPUT__0=f"{datatype} {dims}")


def exported_identity(datatype: str, dims: str) -> SuiteModel:
    example = torch.ones(2, 3, dtype=torch.bfloat16 if datatype == "BF16" else torch.float32)
    return exported(Identity(), (example,), "x", "OUTPUT__0", x={1: COLUMNS} if dims == "-1" else {})


SCRIPTS = BackendSuite(
    TorchBackend(),
    plugin="naiad_torch",
    frameworks=("torch",),
    file="model.pt",
    parameter="INFERENCE_MODE",
    served_with=[naiad_torch, naiad_scheduler_dynamic],
    describes_tensors=False,
    gpu_here=torch.cuda.is_available(),
    datatypes=[each for each in DATATYPES if each != "BYTES"],
    add_sub=script(
        AddSub(), "a b", "OUTPUT__0 OUTPUT__1", a="FP32 4", b="FP32 4", OUTPUT__0="FP32 4", OUTPUT__1="FP32 4"
    ),
    identity=script_identity,
    lookup=script(Gather(), "x", "OUTPUT__0", x="INT64 1", OUTPUT__0="FP32 1"),
    sequence=script(
        Accumulator(), "x start__1 state__2", "OUTPUT__0 OUTPUT__1", SEQUENCES, x="FP32 1", OUTPUT__0="FP32 1"
    ),
    ragged=script(Ragged(), "x", "OUTPUT__0", RAGGED),
    optional=script(
        WithDefault(),
        "x scale",
        "OUTPUT__0",
        'input { name: "scale" data_type: TYPE_FP32 dims: [ 1 ] optional: true }',
        x="FP32 3",
        OUTPUT__0="FP32 3",
    ),
)
PROGRAMS = BackendSuite(
    TorchBackend(),
    plugin="naiad_torch",
    frameworks=(),
    file="model.pt2",
    served_with=[naiad_torch, naiad_scheduler_dynamic],
    gpu_here=torch.cuda.is_available(),
    datatypes=("FP32", "BF16"),
    add_sub=exported(AddSub(), (torch.ones(2, 4), torch.zeros(2, 4)), "a b", "OUTPUT__0 OUTPUT__1", AOTI),
    identity=exported_identity,
    lookup=exported(Gather(), (torch.ones(2, 1, dtype=torch.int64),), "x", "OUTPUT__0"),
    sequence=exported(
        Accumulator(),
        (torch.ones(2, 1), torch.zeros(2, 1), torch.full((2, 1), 2.0)),
        "x start__1 state__2",
        "OUTPUT__0 OUTPUT__1",
        SEQUENCES,
    ),
)


@pytest.mark.parametrize("case", backend_cases(SCRIPTS), ids=str)
def test_torchscript_conforms(case, tmp_path):
    case.check(tmp_path)


@pytest.mark.parametrize("case", backend_cases(PROGRAMS), ids=str)
def test_exported_programs_conform(case, tmp_path):
    case.check(tmp_path)
