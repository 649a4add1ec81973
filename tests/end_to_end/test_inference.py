"""Inference with Triton's own client, against models written in each of the three ways."""

import asyncio

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

from .asking import KINDS, A, B, sums, tensor, wanted
from .running import Running

each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
@pytest.mark.parametrize("first_binary", [True, False])
@pytest.mark.parametrize("second_binary", [True, False])
@pytest.mark.parametrize("output_binary", [(True, True), (True, False), (False, False)])
def test_tensors_travel_as_bytes_as_json_and_mixed(
    server: Running, kind: str, first_binary: bool, second_binary: bool, output_binary: tuple[bool, bool]
) -> None:
    inputs = [tensor("A", A, binary=first_binary), tensor("B", B, binary=second_binary)]
    outputs = wanted("SUM", binary_data=output_binary[0]) + wanted("DIFFERENCE", binary_data=output_binary[1])

    with server.client() as client:
        result = client.infer(f"{kind}_add_sub", inputs, outputs=outputs)

    np.testing.assert_array_equal(result.as_numpy("SUM"), A + B)
    np.testing.assert_array_equal(result.as_numpy("DIFFERENCE"), A - B)
    told = [each.get("parameters", {}).get("binary_data_size") for each in result.get_response()["outputs"]]
    assert told == [32 if binary else None for binary in output_binary]


@each_kind
def test_all_outputs_come_as_bytes_when_none_is_named(server: Running, kind: str) -> None:
    with server.client() as client:
        result = client.infer(f"{kind}_add_sub", sums())

    assert [each["parameters"] for each in result.get_response()["outputs"]] == [{"binary_data_size": 32}] * 2
    np.testing.assert_array_equal(result.as_numpy("DIFFERENCE"), A - B)


@each_kind
def test_only_the_outputs_that_are_named_come_back(server: Running, kind: str) -> None:
    with server.client() as client:
        result = client.infer(f"{kind}_add_sub", sums(), outputs=wanted("DIFFERENCE"))

    assert [each["name"] for each in result.get_response()["outputs"]] == ["DIFFERENCE"]
    assert result.as_numpy("SUM") is None


@each_kind
def test_the_answer_tells_model_version_and_id(server: Running, kind: str) -> None:
    with server.client() as client:
        named = client.infer(f"{kind}_add_sub", sums(), model_version="1", request_id='a "strange" id ü\n')
        nameless = client.infer(f"{kind}_add_sub", sums())

    response = named.get_response()
    assert (response["model_name"], response["model_version"]) == (f"{kind}_add_sub", "1")
    assert response["id"] == 'a "strange" id ü\n'
    assert "id" not in nameless.get_response()


def test_a_body_made_by_the_client_library_is_read_and_its_answer_can_be_parsed(server: Running) -> None:
    body, length = triton.InferenceServerClient.generate_request_body(
        sums(), outputs=wanted("SUM"), request_id="7", priority=1, timeout=1_000_000, parameters={"a": 1}
    )

    headers = {"Inference-Header-Content-Length": str(length)}
    answer = server.ask("POST", "/v2/models/custom_add_sub/infer", body, headers)

    header_length = int(answer.headers["inference-header-content-length"])
    result = triton.InferenceServerClient.parse_response_body(answer.body, header_length=header_length)
    np.testing.assert_array_equal(result.as_numpy("SUM"), A + B)
    assert result.get_response()["id"] == "7"


def test_many_requests_of_one_client_are_each_answered_with_their_own_answer(server: Running) -> None:
    arrays = [np.full((1, 4), number, np.float32) for number in range(100)]

    with server.client(concurrency=16) as client:
        pending = [
            client.async_infer("custom_add_sub", [tensor("A", each), tensor("B", each)], request_id=str(number))
            for number, each in enumerate(arrays)
        ]
        results = [each.get_result() for each in pending]

    assert [result.get_response()["id"] for result in results] == [str(number) for number in range(100)]
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result.as_numpy("SUM"), np.full((1, 4), 2 * number))


def test_the_asyncio_client_asks_everything_too(server: Running) -> None:
    async def ask() -> None:
        async with triton_aio.InferenceServerClient(server.url, conn_limit=16) as client:
            assert await client.is_server_live()
            assert await client.is_server_ready()
            assert await client.is_model_ready("echo", "1")
            assert (await client.get_server_metadata())["name"] == "naiad"
            assert (await client.get_model_metadata("echo"))["versions"] == ["1"]
            assert (await client.get_model_config("echo"))["backend"] == "python"
            assert (await client.get_inference_statistics("echo"))["model_stats"][0]["version"] == "1"
            assert "echo" in {each["name"] for each in await client.get_model_repository_index()}
            await client.unload_model("echo")
            await client.load_model("echo")
            with pytest.raises(InferenceServerException, match="'nobody' is not found"):
                await client.infer("nobody", sums())
            codings = [None, "gzip", "deflate"]
            results = await asyncio.gather(
                *(
                    client.infer(
                        "custom_add_sub",
                        sums(),
                        request_id=str(number),
                        request_compression_algorithm=codings[number % 3],
                        response_compression_algorithm=codings[number // 3 % 3],
                    )
                    for number in range(36)
                )
            )
        assert [each.get_response()["id"] for each in results] == [str(number) for number in range(36)]
        for each in results:
            np.testing.assert_array_equal(each.as_numpy("SUM"), A + B)

    asyncio.run(ask())


def test_a_tensor_as_large_as_the_limit_allows_goes_there_and_back(server: Running) -> None:
    array = np.arange(16_000_000, dtype=np.float32)

    with server.client() as client:
        result = client.infer("echo", [tensor("x", array)])

    np.testing.assert_array_equal(result.as_numpy("output"), array)


def test_one_client_serves_several_models_over_one_connection(server: Running) -> None:
    with server.client() as client:
        for kind in KINDS * 3:
            np.testing.assert_array_equal(client.infer(f"{kind}_add_sub", sums()).as_numpy("SUM"), A + B)
            with pytest.raises(InferenceServerException, match="'nobody' is not found"):
                client.infer("nobody", sums())


# Requests that do not fit the model

WRONG = {
    "missing input": ([tensor("A", A)], r"missing required input\(s\) \['B'\]"),
    "unknown input": ([*sums(), tensor("C", A)], "unexpected inference input 'C'"),
    "datatype": ([tensor("A", A), tensor("B", B.astype(np.int32), "INT32")], "is 'INT32'.*expects 'FP32'"),
    "shape": (
        [tensor("A", A), tensor("B", B[:, :3])],
        r"shape for input 'B'.*Expected \[-1,4\], got \[2,3\]",
    ),
    "batch sizes": ([tensor("A", A), tensor("B", B[:1])], "batch size does not match other inputs"),
    "batch": ([tensor(name, np.zeros((9, 4), np.float32)) for name in "AB"], "batch-size must be <= 8"),
}


@each_kind
@pytest.mark.parametrize(("inputs", "told"), WRONG.values(), ids=WRONG.keys())
def test_inputs_that_do_not_fit_the_model_are_refused(server: Running, kind: str, inputs: list, told: str) -> None:
    with server.client() as client, pytest.raises(InferenceServerException, match=told) as caught:
        client.infer(f"{kind}_add_sub", inputs, request_id="r5")

    assert caught.value.status() == "400"
    assert "[request id: r5]" in caught.value.message()
    assert f"{kind}_add_sub" in caught.value.message()


@pytest.mark.parametrize(
    ("model", "version", "outputs", "status", "told"),
    [
        ("nobody", "", (), "404", "unknown model: 'nobody' is not found"),
        ("custom_add_sub", "2", (), "404", "'custom_add_sub' version 2 is not found"),
        ("custom_add_sub", "0", (), "400", "should be an integral value > 0"),
        ("custom_add_sub", "x", (), "404", "Not Found"),
        ("custom_add_sub", "", ("Q",), "400", "unexpected inference output 'Q'"),
        ("custom_add_sub", "", ("SUM", "SUM"), "400", "output 'SUM' already exists"),
    ],
)
def test_what_is_not_there_cannot_be_asked(
    server: Running, model: str, version: str, outputs: tuple[str, ...], status: str, told: str
) -> None:
    with server.client() as client, pytest.raises(InferenceServerException, match=told) as caught:
        client.infer(model, sums(), model_version=version, outputs=wanted(*outputs))

    assert caught.value.status() == status
