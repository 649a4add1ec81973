"""A server in an environment without naiad-model-calls: a call to another model fails with what to install."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .environments import with_members

if TYPE_CHECKING:
    from conftest import ServerProcess

MODEL = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        asked = pb_utils.InferenceRequest(
            model_name="m", requested_output_names=["y"], inputs=[pb_utils.get_input_tensor_by_name(requests[0], "x")]
        )
        answer = asked.exec()
        return [pb_utils.InferenceResponse(error=answer.error())]
"""
CONFIG = """
backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }
"""


@pytest.fixture(scope="module")
def naiad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `naiad` with models in Python, which cannot call each other."""
    return with_members(tmp_path_factory.mktemp("alone") / "venv", ["naiad", "naiad-http", "naiad-custom"])


def test_a_model_that_calls_another_is_answered_with_what_to_install(
    serve: "Callable[..., ServerProcess]", naiad: Path, tmp_path: Path
) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "m" / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    server = serve(tmp_path, naiad=naiad, frontends=["http"])
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.url}/v2/models/m/infer", data=json.dumps(body).encode())

    assert "pip install 'naiad-model-calls'" in json.load(refused.value)["error"]
