"""Files of a load request that are code: refused unless the server was started with --allow-uploaded-code."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from onnx import TensorProto, helper
from tritonclient import grpc, http
from tritonclient.utils import InferenceServerException

from . import models
from .conftest import Start, ending_well
from .running import Running

Load = Callable[[Running, str, str, bytes], None]
EXPLICIT = ("--model-control-mode=explicit", "--load-model=echo")
CONFIG = json.dumps({"backend": "python"})
ONNX = json.dumps({"backend": "onnxruntime"})


def load_over_http(running: Running, config: str, file: str, content: bytes) -> None:
    with http.InferenceServerClient(running.url) as client:
        client.load_model("sent", config=config, files={f"file:{file}": content})


def load_over_grpc(running: Running, config: str, file: str, content: bytes) -> None:
    with grpc.InferenceServerClient(f"127.0.0.1:{running.grpc_port}") as client:
        client.load_model("sent", config=config, files={f"file:{file}": content})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with the model `echo`, to which clients load models."""
    folder = tmp_path_factory.mktemp("server")
    models.write(folder / "models", "echo", models.ECHO)
    with ending_well(Running(folder / "models", folder / "log", *EXPLICIT)) as running:
        yield running


LOADS = pytest.mark.parametrize("load", [load_over_http, load_over_grpc])


@LOADS
@pytest.mark.parametrize(
    ("config", "file"),
    [
        (CONFIG, "1/model.py"),
        (json.dumps({"backend": "python", "default_model_filename": "model.txt"}), "1/model.txt"),
        ("{}", "1/model.py"),
        (json.dumps({"backend": "pytorch"}), "1/model.pt"),
        (ONNX, "1/library.so.2"),
        (ONNX, "1/environment.tar.gz"),
    ],
)
def test_code_of_a_client_is_refused_and_never_executed(
    server: Running, tmp_path: Path, load: Load, config: str, file: str
) -> None:
    with pytest.raises(InferenceServerException) as refusal:
        load(server, config, file, f"open({str(tmp_path / 'executed')!r}, 'w')".encode())

    assert f"file override '{file}' is code for the backend" in str(refusal.value)
    assert "--allow-uploaded-code" in str(refusal.value)
    assert not (tmp_path / "executed").exists()
    assert server.infer("echo", 1.5).status == 200


@LOADS
def test_a_library_that_the_configuration_loads_is_code(server: Running, load: Load) -> None:
    config = json.dumps({"backend": "onnxruntime", "model_operations": {"op_library_filename": ["1/operators"]}})

    with pytest.raises(InferenceServerException, match="file override '1/operators' is code"):
        load(server, config, "1/operators", b"\x7fELF")


@LOADS
def test_a_library_that_a_parameter_names_is_code(server: Running, load: Load) -> None:
    parameters = {"CPU_EXTENSION_PATH": {"string_value": "1/operators.bin"}}
    config = json.dumps({"backend": "openvino", "parameters": parameters})

    with pytest.raises(InferenceServerException, match=r"file override '1/operators\.bin' is code"):
        load(server, config, "1/operators.bin", b"\x7fELF")


@LOADS
@pytest.mark.parametrize("key", ["trt_extra_plugin_lib_paths", "trt_engine_decryption_lib_path"])
def test_a_configuration_of_a_client_names_no_libraries_of_the_server(server: Running, load: Load, key: str) -> None:
    accelerator = {"name": "tensorrt", "parameters": {key: "/tmp/plugins"}}
    accelerators = {"gpu_execution_accelerator": [accelerator]}
    config = json.dumps({"backend": "onnxruntime", "optimization": {"execution_accelerators": accelerators}})

    with pytest.raises(InferenceServerException, match=f"parameter '{key}' of an accelerator names files"):
        load(server, config, "1/model.onnx", adder())


@pytest.mark.parametrize("parameter", ["python", "EXECUTION_ENV_PATH"])
def test_a_configuration_of_a_client_chooses_no_program(server: Running, tmp_path: Path, parameter: str) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'executed'}\n")
    program.chmod(0o755)
    config = {"backend": "python", "parameters": {parameter: {"string_value": str(program)}}}

    with http.InferenceServerClient(server.url) as client, pytest.raises(InferenceServerException) as refusal:
        client.load_model("echo", config=json.dumps(config))

    assert f"parameter '{parameter}' chooses the program that runs model 'echo'" in str(refusal.value)
    assert "--allow-uploaded-code" in str(refusal.value)
    assert not (tmp_path / "executed").exists()
    assert server.infer("echo", 1.5).status == 200


@LOADS
def test_the_option_allows_code_of_clients(start: Start, repository: Path, load: Load) -> None:
    running = start(*EXPLICIT, "--allow-uploaded-code")

    load(running, CONFIG, "1/model.py", models.ECHO.encode())

    assert running.infer("sent", 1.5).status == 200


@LOADS
def test_files_that_are_no_code_need_no_option(start: Start, repository: Path, load: Load) -> None:
    running = start(*EXPLICIT)

    load(running, ONNX, "1/model.onnx", adder())

    answer = running.infer("sent", 1.5)
    assert answer.document["outputs"][0]["data"] == [2.5]


def adder() -> bytes:
    """An ONNX model that adds 1 to its input `x`."""
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    graph = helper.make_graph([helper.make_node("Add", ["x", "one"], ["y"])], "adder", tensors[:1], tensors[1:], [one])
    content: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()
    return content
