"""Inference through every client: datatypes, ids, parameters, outputs, classes, headers, plugins, and errors."""

import json
from http.client import HTTPConnection
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tritonclient.grpc.aio import auth as grpc_aio_auth
from tritonclient.grpc.auth import BasicAuth as GrpcAuth
from tritonclient.http.aio import auth as http_aio_auth
from tritonclient.http.auth import BasicAuth as HttpAuth
from tritonclient.utils import InferenceServerException

from ..asking import KINDS as MODEL_KINDS
from ..asking import A, B
from ..models import DATATYPES
from .driving import Driven

X = np.array([1.0], np.float32)
AUTHORIZATION = "Basic dXNlcjpwYXNz"
ARRAYS: dict[str, np.ndarray] = {
    kind: np.array([[0, 1, 100]], "?" if kind == "BOOL" else kind.lower().replace("fp", "float"))
    for kind in DATATYPES
    if kind not in ("BYTES", "BF16")
}
ARRAYS["BYTES"] = np.array([[b"text", b"", b"\xff\x00"]], dtype=object)
ARRAYS["BF16"] = np.array([[0, 1, 100]], ml_dtypes.bfloat16)
PLUGINS = {
    "http": HttpAuth,
    "http.aio": http_aio_auth.BasicAuth,
    "grpc": GrpcAuth,
    "grpc.aio": grpc_aio_auth.BasicAuth,
}


def told(result: Any) -> dict[str, Any]:
    """What the model `telling` says of its request."""
    document: dict[str, Any] = json.loads(result.as_numpy("TOLD")[0])
    return document


@pytest.mark.parametrize("model", [f"{kind}_add_sub" for kind in MODEL_KINDS])
def test_every_kind_of_model_adds_and_subtracts(client: Driven, model: str) -> None:
    result = client.infer(model, [client.tensor("A", A), client.tensor("B", B)])

    assert result.as_numpy("SUM").tolist() == (A + B).tolist()
    assert result.as_numpy("DIFFERENCE").tolist() == (A - B).tolist()


def test_every_datatype_comes_back_as_it_was(client: Driven) -> None:
    inputs = [client.tensor(f"IN_{kind}", array, kind) for kind, array in ARRAYS.items()]

    result = client.infer("triton_mirror", inputs)

    for kind, array in ARRAYS.items():
        assert result.as_numpy(f"OUT_{kind}").tolist() == array.tolist(), kind


def test_tensors_without_elements_come_back_as_they_were(client: Driven) -> None:
    inputs = [client.tensor(f"IN_{kind}", array[:, :0], kind) for kind, array in ARRAYS.items()]

    result = client.infer("triton_mirror", inputs)

    assert {result.as_numpy(f"OUT_{kind}").shape for kind in ARRAYS} == {(1, 0)}


def test_an_answer_says_whose_it_is(client: Driven) -> None:
    result = client.infer("echo", [client.tensor("x", X)], "1", request_id="the id")
    response = result.get_response() if client.is_web else result.get_response(as_json=True)

    assert (response["id"], response["model_name"], response["model_version"]) == ("the id", "echo", "1")


def test_only_the_outputs_asked_for_come(client: Driven) -> None:
    inputs = [client.tensor("A", A), client.tensor("B", B)]

    result = client.infer("custom_add_sub", inputs, outputs=[client.wanted("DIFFERENCE")])

    assert result.as_numpy("SUM") is None
    assert result.get_output("SUM") is None
    assert result.as_numpy("DIFFERENCE").tolist() == (A - B).tolist()


def test_scores_come_as_classes(client: Driven) -> None:
    x = client.tensor("x", np.ones((1, 4), np.float32))

    result = client.infer("scores", [x], outputs=[client.wanted("scores", class_count=2)])

    assert result.as_numpy("scores").tolist() == [[b"4.000000:3", b"3.000000:2:two"]]


def test_what_a_request_says_beside_its_tensors_reaches_the_model(client: Driven) -> None:
    own = {"text": "a", "number": -5, "flag": True}

    result = client.infer(
        "telling",
        [client.tensor("x", X)],
        request_id="r",
        sequence_id=7,
        sequence_start=True,
        sequence_end=True,
        priority=1,
        timeout=5_000_000,
        headers={"x-tenant": "north"},
        parameters=own,
    )

    said = told(result)
    assert (said["id"], said["timeout"]) == ("r", 5_000_000)
    assert said["parameters"] == own | {"x-tenant": "north"}


def test_a_sequence_may_be_called_by_a_text(client: Driven) -> None:
    result = client.infer("telling", [client.tensor("x", X)], sequence_id="seven", sequence_start=True)

    assert told(result)["id"] == ""


def test_a_plugin_of_the_client_signs_its_requests(client: Driven) -> None:
    client.register_plugin(PLUGINS[client.kind]("user", "pass"))
    signed = client.infer("telling", [client.tensor("x", X)])
    plugged = client.plugin()
    client.unregister_plugin()
    unsigned = client.infer("telling", [client.tensor("x", X)])

    assert isinstance(plugged, PLUGINS[client.kind])
    assert told(signed)["parameters"] == {"authorization": AUTHORIZATION}
    assert told(unsigned)["parameters"] == {}


@pytest.mark.parametrize(
    ("model", "array", "datatype", "status", "said"),
    [
        ("nothing", X, "FP32", ("404", "NOT_FOUND"), "'nothing' is not found"),
        ("echo", X.astype(np.int32), "INT32", ("400", "INVALID_ARGUMENT"), "data-type is 'INT32'"),
        ("echo", X.reshape(1, 1), "FP32", ("400", "INVALID_ARGUMENT"), "unexpected shape for input 'x'"),
        ("repeat", X, "FP32", ("501", "UNIMPLEMENTED"), "decoupled"),
    ],
)
def test_what_cannot_be_answered_is_an_error_with_its_status(
    client: Driven, model: str, array: np.ndarray, datatype: str, status: tuple[str, str], said: str
) -> None:
    with pytest.raises(InferenceServerException, match=said) as caught:
        client.infer(model, [client.tensor("x", array, datatype)])

    assert caught.value.status() == (status[0] if client.is_web else f"StatusCode.{status[1]}")


def test_a_large_tensor_comes_back_whole(client: Driven) -> None:
    x = np.arange(200_000, dtype=np.float32)

    result = client.infer("echo", [client.tensor("x", x)])

    assert np.array_equal(result.as_numpy(result_name(result, client)), x)


def result_name(result: Any, client: Driven) -> str:
    """The name of the one output."""
    response = result.get_response() if client.is_web else result.get_response(as_json=True)
    name: str = response["outputs"][0]["name"]
    return name


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_bodies_travel_compressed_both_ways(web_client: Driven, algorithm: str) -> None:
    inputs = [web_client.tensor("A", A), web_client.tensor("B", B, binary_data=False)]

    result = web_client.infer(
        "custom_add_sub", inputs, request_compression_algorithm=algorithm, response_compression_algorithm=algorithm
    )

    assert result.as_numpy("SUM").tolist() == (A + B).tolist()


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_messages_travel_compressed(rpc_client: Driven, algorithm: str) -> None:
    inputs = [rpc_client.tensor("A", A), rpc_client.tensor("B", B)]

    result = rpc_client.infer("custom_add_sub", inputs, compression_algorithm=algorithm)

    assert result.as_numpy("SUM").tolist() == (A + B).tolist()


@pytest.mark.parametrize("binary", [True, False])
def test_tensors_go_and_come_as_bytes_and_as_json(web_client: Driven, binary: bool) -> None:
    inputs = [web_client.tensor(name, array, binary_data=binary) for name, array in (("A", A), ("B", B))]

    result = web_client.infer("custom_add_sub", inputs, outputs=[web_client.wanted("SUM", binary_data=not binary)])

    assert result.as_numpy("SUM").tolist() == (A + B).tolist()


def test_a_request_is_made_and_an_answer_read_without_the_client_sending_it(web_client: Driven) -> None:
    x = web_client.tensor("x", X)
    body, header_length = web_client.generate_request_body([x])
    wire = HTTPConnection(web_client.address)
    wire.request("POST", "/v2/models/echo/infer", body, {"Inference-Header-Content-Length": str(header_length)})
    answer = wire.getresponse()
    content, length = answer.read(), int(answer.headers["Inference-Header-Content-Length"])
    wire.close()

    result = web_client.parse_response_body(content, header_length=length)

    assert result.as_numpy("output").tolist() == X.tolist()
