"""A net of Caffe2 behind a real server, asked by Triton's own client over HTTP."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tritonclient.http as triton

if TYPE_CHECKING:
    from conftest import ServerProcess

CONFIG = """platform: "caffe2_netdef"
max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }
"""
NET = """op { input: "x" input: "w" input: "b" output: "y" type: "FC" }
op { input: "y" output: "y" type: "Relu" }
op { input: "y" output: "best" type: "ArgMax" arg { name: "keepdims" i: 1 } }
external_input: "x" external_input: "w" external_input: "b" external_output: "y" external_output: "best"
"""
INIT = """op { output: "w" type: "GivenTensorFill"
     arg { name: "shape" ints: [ 3, 2 ] } arg { name: "values" floats: [ 1, 0, 0, 1, 1, 1 ] } }
op { output: "b" type: "ConstantFill" arg { name: "shape" ints: 3 } arg { name: "value" f: -1 } }
"""


def test_a_client_is_told_of_a_net_and_answered(serve: "Callable[..., ServerProcess]", tmp_path: Path) -> None:
    (tmp_path / "net" / "1").mkdir(parents=True)
    (tmp_path / "net" / "config.pbtxt").write_text(CONFIG)
    (tmp_path / "net" / "1" / "model.netdef").write_text(NET)
    (tmp_path / "net" / "1" / "init_model.netdef").write_text(INIT)
    given = triton.InferInput("x", [2, 2], "FP32")
    given.set_data_from_numpy(np.array([[1, 3], [5, -4]], np.float32))

    with triton.InferenceServerClient(serve(tmp_path).url.removeprefix("http://")) as client:
        told = client.get_model_metadata("net")
        answer = client.infer("net", [given])

    assert told["platform"] == "caffe2_netdef"
    assert told["outputs"] == [
        {"name": "y", "datatype": "FP32", "shape": [-1, 3]},
        {"name": "best", "datatype": "INT64", "shape": [-1, 1]},
    ]
    assert answer.as_numpy("y").tolist() == [[0, 2, 3], [4, 0, 0]]
    assert answer.as_numpy("best").tolist() == [[2], [0]]
