"""The runtime of KServe over the folders that its storage initialiser leaves, with real servers and clients."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
import tritonclient.grpc as over_grpc
import tritonclient.http as over_http
import yaml
from tritonclient.utils import np_to_triton_dtype

from ..example_models import built_examples
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


@pytest.fixture(scope="module")
def examples(request: pytest.FixtureRequest) -> Path:
    """The built example repository."""
    return built_examples(request)


class Served(NamedTuple):
    """A model as it lies in a folder of `source`, what it is asked, and what one of its outputs says then."""

    source: str
    files: str
    array: np.ndarray
    output: str
    expected: list[Any]


FLOAT = np.array([[20]], np.float32)
BLINKER = np.array([[[0, 0, 0, 0]] * 2 + [[1, 1, 1, 0]] + [[0, 0, 0, 0]] * 2], np.uint8)
TURNED = np.array([[[0, 0, 0, 0]] + [[0, 1, 0, 0]] * 3 + [[0, 0, 0, 0]]])
MODELS = {
    "onnx": Served("word_ids/1", "", np.array([["Cat"]], object), "ids", [[2]]),
    "torch": Served("life/1", "", BLINKER, "OUTPUT__0", TURNED.tolist()),
    "tensorflow": Served("slug/1/model.savedmodel", "0001", np.array([["A b"]], object), "slug", [[b"a-b"]]),
    "python": Served("celsius/1", "", FLOAT, "fahrenheit", [[68.0]]),
    "a folder of a model": Served("word_ids", "", np.array([["Cat"]], object), "ids", [[2]]),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_bare_model_is_served_under_the_name_of_the_inference_service(
    serve: "Serve", tmp_path: Path, examples: Path, model: Served
) -> None:
    folder = tmp_path / "models"
    shutil.copytree(examples / model.source, folder / model.files)

    server = serve(*words(folder, "iris"), frontends=["grpc", "http"])
    grpc_port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    answers = [
        ask(client, module, model)
        for module, client in (
            (over_http, over_http.InferenceServerClient(server.url.removeprefix("http://"))),
            (over_grpc, over_grpc.InferenceServerClient(f"127.0.0.1:{grpc_port}")),
        )
    ]

    assert answers == [model.expected] * 2


def ask(client: Any, module: Any, model: Served) -> list[Any]:
    """The output of the model iris that is looked at."""
    assert client.is_model_ready("iris")
    metadata = client.get_model_metadata("iris")
    (tensor,) = metadata["inputs"] if isinstance(metadata, dict) else metadata.inputs
    name = tensor["name"] if isinstance(metadata, dict) else tensor.name
    sent = module.InferInput(name, model.array.shape, np_to_triton_dtype(model.array.dtype))
    sent.set_data_from_numpy(model.array)
    result = client.infer("iris", [sent])
    client.close()
    return result.as_numpy(model.output).tolist()


def test_a_repository_keeps_the_names_of_its_models(serve: "Serve", tmp_path: Path) -> None:
    (tmp_path / "echo" / "1").mkdir(parents=True)
    (tmp_path / "echo" / "1" / "model.py").write_text(ECHO)

    server = serve(*words(tmp_path, "iris"), frontends=["http"])

    server.wait_for("--model-name=iris names no model: .* is a model repository")
    client = over_http.InferenceServerClient(server.url.removeprefix("http://"))
    assert client.is_model_ready("echo")
    client.close()
