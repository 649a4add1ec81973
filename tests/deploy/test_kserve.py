"""The runtime of KServe over the folders that its storage initialiser leaves, with real servers and clients."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tritonclient.grpc as over_grpc
import tritonclient.http as over_http
import yaml

from ..written import ECHO

if TYPE_CHECKING:
    from ..conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

KSERVE = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes" / "kserve"
(CONTAINER,) = yaml.safe_load((KSERVE / "cluster-serving-runtime.yaml").read_text())["spec"]["containers"]
_OF_THE_TEST = ("--http-port=", "--grpc-port=")


def words(folder: Path, name: str) -> list[str]:
    """The words of the runtime's container after `serve`, as KServe completes them, but for the ports."""
    assert CONTAINER["args"][0] == "serve"
    completed = [word.replace("{{.Name}}", name).replace("/mnt/models", str(folder)) for word in CONTAINER["args"][1:]]
    return [word for word in completed if not word.startswith(_OF_THE_TEST)]


def write_onnx(folder: Path) -> None:
    from onnx import TensorProto, helper, save

    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "echo", tensors[:1], tensors[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    save(model, folder / "model.onnx")


def write_torch(folder: Path) -> None:
    import torch

    exported = torch.export.export(torch.nn.Identity(), (torch.zeros(1),))
    torch.export.save(exported, folder / "model.pt2")


def write_tensorflow(folder: Path) -> None:
    import tensorflow as tf

    module = tf.Module()
    module.serve = tf.function(lambda x: {"y": x}, input_signature=[tf.TensorSpec([1], tf.float32, name="x")])
    tf.saved_model.save(module, str(folder / "0001"), signatures=module.serve.get_concrete_function())


def write_python(folder: Path) -> None:
    (folder / "model.py").write_text(ECHO)


def write_model_folder(folder: Path) -> None:
    (folder / "1").mkdir()
    write_onnx(folder / "1")


@pytest.mark.parametrize("write", [write_onnx, write_torch, write_tensorflow, write_python, write_model_folder])
def test_a_bare_model_is_served_under_the_name_of_the_inference_service(
    serve: "Serve", tmp_path: Path, write: Callable[[Path], None]
) -> None:
    write(tmp_path)

    server = serve(*words(tmp_path, "iris"), frontends=["grpc", "http"])
    grpc_port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    answers = [
        ask(client, module)
        for module, client in (
            (over_http, over_http.InferenceServerClient(server.url.removeprefix("http://"))),
            (over_grpc, over_grpc.InferenceServerClient(f"127.0.0.1:{grpc_port}")),
        )
    ]

    assert answers == [[7.0], [7.0]]


def ask(client: "over_http.InferenceServerClient", module: object) -> list[float]:
    """The answer of the model iris to 7."""
    assert client.is_model_ready("iris")
    metadata = client.get_model_metadata("iris")
    tensors = (metadata if isinstance(metadata, dict) else {"inputs": [{"name": metadata.inputs[0].name}]})["inputs"]
    sent = module.InferInput(tensors[0]["name"], [1], "FP32")  # type: ignore[attr-defined]
    sent.set_data_from_numpy(np.array([7], np.float32))
    result = client.infer("iris", [sent])
    output = result.get_response()["outputs"][0]["name"] if isinstance(metadata, dict) else metadata.outputs[0].name
    client.close()
    return result.as_numpy(output).tolist()


def test_a_repository_keeps_the_names_of_its_models(serve: "Serve", tmp_path: Path) -> None:
    (tmp_path / "echo" / "1").mkdir(parents=True)
    (tmp_path / "echo" / "1" / "model.py").write_text(ECHO)

    server = serve(*words(tmp_path, "iris"), frontends=["http"])

    server.wait_for("--model-name=iris names no model: .* is a model repository")
    client = over_http.InferenceServerClient(server.url.removeprefix("http://"))
    assert client.is_model_ready("echo")
    client.close()
