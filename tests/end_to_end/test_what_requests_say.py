"""What a request says beside its tensors: parameters, headers, identity, and which classes it wants."""

import json

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from .asking import A, B, sums, tensor, wanted
from .running import Running


def test_a_model_learns_what_the_request_says_and_can_say_something_itself(server: Running) -> None:
    parameters = {"text": "ü", "whole": 2**63 - 1, "minus": -1, "half": 0.5, "yes": True}
    with server.client() as client:
        result = client.infer(
            "telling",
            [tensor("x", np.zeros(1, np.float32))],
            request_id="r1",
            outputs=wanted("TOLD"),
            timeout=5_000_000,
            priority=3,
            parameters=parameters,
        )

    told = json.loads(result.as_numpy("TOLD")[0])
    assert told == {"id": "r1", "parameters": parameters, "timeout": 5_000_000, "outputs": ["TOLD"]}
    answered = result.get_response()["parameters"]
    assert answered == {name: value for name, value in parameters.items() if name != "half"}


def test_headers_that_are_forwarded_reach_the_model(server: Running) -> None:
    headers = {"X-Tenant": "blue", "Other": "kept back"}
    with server.client() as client:
        result = client.infer("telling", [tensor("x", np.zeros(1, np.float32))], headers=headers)

    forwarded = json.loads(result.as_numpy("TOLD")[0])["parameters"]
    assert {name.lower(): value for name, value in forwarded.items()} == {"x-tenant": "blue"}


class Signs(triton.InferenceServerClientPlugin):
    """A plugin of the client library that puts a header into each request."""

    def __call__(self, request: triton.Request) -> None:
        request.headers["X-Signed"] = "yes"


def test_a_plugin_of_the_client_reaches_the_model(server: Running) -> None:
    with server.client() as client:
        client.register_plugin(Signs())
        result = client.infer("telling", [tensor("x", np.zeros(1, np.float32))])

    assert "yes" in json.loads(result.as_numpy("TOLD")[0])["parameters"].values()


def test_a_model_without_sequences_answers_the_requests_of_one(server: Running) -> None:
    with server.client() as client:
        results = [
            client.infer("custom_add_sub", sums(), sequence_id=identity, sequence_start=True, sequence_end=True)
            for identity in (7, "seven")
        ]

    for result in results:
        np.testing.assert_array_equal(result.as_numpy("SUM"), A + B)


def test_query_parameters_do_not_hinder_a_request(server: Running) -> None:
    with server.client() as client:
        result = client.infer("custom_add_sub", sums(), query_params={"trace": "1", "tag": ["a", "b c"]})

    np.testing.assert_array_equal(result.as_numpy("SUM"), A + B)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"priority": -1}, "'priority'"),
        ({"timeout": "soon"}, "'timeout'"),
        ({"binary_data_output": 1}, "'binary_data_output'"),
        ({"sequence_start": "yes"}, "'sequence_start'"),
        ({"triton_enable_empty_final_response": True}, "reserved for Triton usage"),
        ({"list": [1]}, "'list' has invalid type"),
    ],
)
def test_parameters_that_make_no_sense_are_the_callers_fault(server: Running, parameters: dict, told: str) -> None:
    answer = server.infer("echo", 1, parameters=parameters)

    assert answer.status == 400
    assert told in answer.error


# Classification


@pytest.mark.parametrize("binary", [True, False])
def test_the_best_classes_come_with_value_index_and_label(server: Running, binary: bool) -> None:
    array = np.array([[1, 1, 1, 1], [4, 0, 3, -1]], np.float32)
    with server.client() as client:
        result = client.infer(
            "scores", [tensor("x", array)], outputs=wanted("scores", class_count=3, binary_data=binary)
        )

    rows = [[each if isinstance(each, str) else each.decode() for each in row] for row in result.as_numpy("scores")]
    assert rows == [
        ["4.000000:3", "3.000000:2:two", "2.000000:1:one"],
        ["9.000000:2:two", "4.000000:0:zero", "0.000000:1:one"],
    ]
    assert result.get_output("scores")["datatype"] == "BYTES"


def test_no_more_classes_come_than_there_are(server: Running) -> None:
    with server.client() as client:
        result = client.infer(
            "scores", [tensor("x", np.ones((1, 4), np.float32))], outputs=wanted("scores", class_count=100)
        )

    assert result.as_numpy("scores").shape == (1, 4)


def test_what_has_no_order_has_no_classes(server: Running) -> None:
    with server.client() as client, pytest.raises(InferenceServerException, match="unsupported type 'BYTES'") as caught:
        client.infer("telling", [tensor("x", np.zeros(1, np.float32))], outputs=wanted("TOLD", class_count=1))

    assert caught.value.status() == "400"
