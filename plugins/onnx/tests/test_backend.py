"""Completing and loading real files."""

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from naiad.errors import ConfigError, InvalidArgumentError, PluginError, UnsupportedError
from naiad_config import ModelTensorReshape

ADD_SUB = """
max_batch_size: 8
input [ { name: "A" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "B" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "SUM" data_type: TYPE_FP32 dims: [ 16 ] } ]
"""


def parameter(key: str, text: str) -> str:
    return f'parameters {{ key: "{key}" value: {{ string_value: "{text}" }} }}'


def test_shapes_are_those_that_onnx_runtime_infers(workbench, models):
    inferred = models.identity([1, 3])
    inferred.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "n"

    config = workbench.complete(inferred)

    assert config.max_batch_size == 0
    assert config.output[0].dims == (1, 3)


def test_a_scalar_model_is_completed_and_loaded(workbench, models):
    served = workbench.load(models.identity([]))

    assert served.config.max_batch_size == 0
    assert served.config.input[0].reshape == ModelTensorReshape(shape=())


def test_a_complete_configuration_does_not_open_the_file_for_completion(workbench):
    context = workbench.context(ADD_SUB)

    assert workbench.backend.complete(context) is context.config


def test_outputs_that_are_no_tensors_are_left_out_with_a_warning(workbench, models, caplog):
    with caplog.at_level(logging.WARNING):
        served = workbench.load(models.sequence_output())

    assert [entry.name for entry in served.config.output] == ["OUT"]
    assert "output 'LIST' is seq(tensor(float)), which no client can take" in caplog.text


def test_the_file_may_have_another_name(workbench, models, float_array):
    workbench.write(models.identity(["n", 1]), file="net.onnx")

    served = workbench.load_files('default_model_filename: "net.onnx"')

    assert served.execute({"IN": float_array([[1]])})["OUT"].tolist() == [[1]]


@pytest.mark.parametrize("content", [b"", b"this is not a model", b"\x08\x09hello"], ids=["empty", "text", "cut"])
@pytest.mark.parametrize("config", ["", ADD_SUB], ids=["completing", "loading"])
def test_a_corrupt_file_is_named_with_what_onnx_runtime_says(workbench, content, config):
    with pytest.raises(InvalidArgumentError) as caught:
        workbench.load(content, config)

    message = str(caught.value)
    assert f"ONNX Runtime cannot load '{workbench.directory}/1/model.onnx' of model 'm'" in message
    assert "onnx runtime error" in message


def test_an_operator_that_onnx_runtime_lacks_is_reported_without_blaming_the_file(workbench, models):
    with pytest.raises(InvalidArgumentError) as caught:
        workbench.load(models.add_sub(("n", 2), TensorProto.BFLOAT16))

    assert "Could not find an implementation for Add" in str(caught.value)
    assert "export the model with other operators or types" in str(caught.value)


def test_weights_may_lie_in_a_file_beside_the_model(workbench, models, save_with_external_weights):
    save_with_external_weights(models.dense(), workbench.directory / "1" / "model.onnx")

    served = workbench.load_files()

    assert served.execute({"IN": np.ones((1, 64), np.float32)})["OUT"].tolist() == [[64.0] * 64]


def test_the_model_may_be_a_folder_with_its_weights(workbench, models, save_with_external_weights):
    save_with_external_weights(models.dense(), workbench.directory / "1" / "model.onnx" / "model.onnx")

    served = workbench.load_files()

    assert served.execute({"IN": np.ones((1, 64), np.float32)})["OUT"].tolist() == [[64.0] * 64]


def test_missing_external_weights_are_reported(workbench, models, save_with_external_weights):
    save_with_external_weights(models.dense(), workbench.directory / "1" / "model.onnx")
    (workbench.directory / "1" / "weights.bin").unlink()

    with pytest.raises(InvalidArgumentError, match=r"weights\.bin"):
        workbench.load_files()


def test_a_provider_that_does_not_start_fails_the_load(workbench, models, monkeypatch):
    class OnTheCpu:
        def __init__(self, *arguments, **options):
            pass

        def get_providers(self):
            return ["CPUExecutionProvider"]

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "InferenceSession", OnTheCpu)
    workbench.folder.gpus = 1

    with pytest.raises(UnsupportedError, match="could not start CUDAExecutionProvider for model 'm'"):
        workbench.load(models.add_sub(), "instance_group [ { kind: KIND_GPU } ]")


def test_a_model_with_bf16_and_strings_is_refused(workbench, models):
    tensors = [("IN", ["n", 1], TensorProto.STRING), ("HALF", ["n", 1], TensorProto.BFLOAT16)]
    nodes = [helper.make_node("Identity", [name], [f"{name}_OUT"]) for name, _, _ in tensors]
    inputs = [models.value(*tensor) for tensor in tensors]
    outputs = [models.value(f"{name}_OUT", shape, kind) for name, shape, kind in tensors]

    with pytest.raises(UnsupportedError, match="model 'm' has both BF16 and string tensors"):
        workbench.load(models.model_of(nodes, inputs, outputs))


def test_mistakes_are_found_where_a_configuration_is_checked_and_nothing_is_loaded(workbench, models):
    warp = 'optimization { execution_accelerators { cpu_execution_accelerator [ { name: "warp" } ] } }'
    tensors = 'input { name: "A" data_type: TYPE_FP32 dims: 16 } output { name: "SUM" data_type: TYPE_FP32 dims: 16 }'

    with pytest.raises(ConfigError, match="unknown Execution Accelerator 'warp'"):
        workbench.complete(models.add_sub(), tensors + warp)
    with pytest.raises(ConfigError, match="did you mean 'intra_op_thread_count'"):
        workbench.complete(models.add_sub(), tensors + parameter("intra_op_threads_count", "1"))


def test_gpu_accelerators_on_the_cpu_are_warned_about(workbench, models, caplog):
    requested = 'optimization { execution_accelerators { gpu_execution_accelerator [ { name: "tensorrt" } ] } }'

    with caplog.at_level(logging.WARNING):
        workbench.load(models.add_sub(), requested)

    assert "gpu_execution_accelerator has no effect" in caplog.text


def test_a_missing_onnx_runtime_says_what_to_install(workbench, models, monkeypatch):
    from naiad_kit.backends.onnx_runtime import onnx_runtime

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    onnx_runtime.cache_clear()

    with pytest.raises(PluginError, match=r"pip install 'naiad-onnx\[cpu\]'"):
        workbench.load(models.add_sub())


def test_onnx_runtime_prints_nothing_of_its_own(tmp_path: Path, models):
    model = tmp_path / "m" / "1" / "model.onnx"
    model.parent.mkdir(parents=True)
    model.write_bytes(models.gather().SerializeToString())
    program = f"""
import pathlib, numpy
from naiad.backend import Batch, ModelContext, Placement
from naiad_config import ModelConfig, ModelInstanceGroup
from naiad.types import Request
from naiad_tensors.tensors import Tensor
from naiad_onnx.backend import OnnxBackend
directory = pathlib.Path({str(tmp_path)!r}) / "m"
backend = OnnxBackend()
context = ModelContext(ModelConfig(name="m"), 1, directory, directory / "1")
context = ModelContext(backend.complete(context), 1, directory, directory / "1")
instance = backend.load(context).instantiate(Placement("m_0", "CPU", 0, ModelInstanceGroup()))
request = Request("m", {{"INDEX": Tensor.of("INDEX", numpy.array([[9]]))}})
try:
    instance.execute(Batch([request], [1]))
except Exception as error:
    print(type(error).__name__)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (ran.stdout, ran.stderr) == ("ModelFailedError\n", "")
