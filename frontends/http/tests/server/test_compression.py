"""Compressed bodies and answers of a whole server, with Triton's client and by hand."""

import gzip
import json
import zlib

import numpy as np
import pytest
import tritonclient.http as triton

CODINGS = (None, "gzip", "deflate")
PATH = "/v2/models/mirror_fp32/infer"
BODY = json.dumps({"inputs": [{"name": "X", "datatype": "FP32", "shape": [3], "data": [1, 2, 3]}]}).encode()


@pytest.mark.parametrize("request_coding", CODINGS)
@pytest.mark.parametrize("response_coding", CODINGS)
@pytest.mark.parametrize(("size", "binary"), [(1, True), (1, False), (300_000, True), (3000, False)])
def test_the_client_may_compress_both_ways(shared_server, request_coding, response_coding, size, binary):
    array = np.arange(size, dtype=np.float32)
    tensor = triton.InferInput("X", [size], "FP32")
    tensor.set_data_from_numpy(array, binary_data=binary)
    output = triton.InferRequestedOutput("Y", binary_data=binary)

    with triton.InferenceServerClient(shared_server.url, connection_timeout=20, network_timeout=20) as client:
        result = client.infer(
            "mirror_fp32",
            [tensor],
            outputs=[output],
            request_compression_algorithm=request_coding,
            response_compression_algorithm=response_coding,
        )

    np.testing.assert_array_equal(result.as_numpy("Y"), array)


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("gzip;q=0.5, deflate;q=0.9", "deflate"),
        ("gzip;q=0, identity", None),
        ("br", None),
        (";;q=,,gzip;q=much", None),
    ],
)
def test_the_answer_has_the_coding_that_the_client_prefers(shared_server, accepted, coding):
    status, headers, body = shared_server.ask("POST", PATH, BODY, {"Accept-Encoding": accepted})

    content = {None: bytes, "gzip": gzip.decompress, "deflate": zlib.decompress}[coding](body)
    assert (status, headers.get("content-encoding")) == (200, coding)
    assert json.loads(content)["outputs"][0]["data"] == [1.0, 2.0, 3.0]


def test_the_length_of_the_json_is_that_of_the_body_before_it_is_compressed(shared_server):
    head = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}]}
    text = json.dumps(head | {"parameters": {"binary_data_output": True}}).encode()
    numbers = np.array([1, 2], np.float32).tobytes()
    headers = {"Content-Encoding": "deflate", "Inference-Header-Content-Length": str(len(text))}

    _, answered, body = shared_server.ask(
        "POST", PATH, zlib.compress(text + numbers), headers | {"Accept-Encoding": "gzip"}
    )

    content, length = gzip.decompress(body), int(answered["inference-header-content-length"])
    assert json.loads(content[:length])["outputs"][0]["parameters"] == {"binary_data_size": 8}
    assert content[length:] == numbers


@pytest.mark.parametrize(
    ("model", "document", "status", "message"),
    [
        ("dream", {}, 404, "'dream'"),
        ("mirror_fp32", {"parameters": {"refuse": "no"}}, 400, "[request id: 7] no"),
    ],
)
def test_an_error_is_plain_text_and_names_its_request(shared_server, model, document, status, message):
    body = json.dumps({"id": "7", **json.loads(BODY), **document})

    got, headers, answer = shared_server.ask("POST", f"/v2/models/{model}/infer", body, {"Accept-Encoding": "gzip"})

    assert (got, headers.get("content-encoding")) == (status, None)
    assert message in json.loads(answer)["error"]


@pytest.mark.parametrize("coding", ["br", "compress", "gzip, deflate", "x" * 1000])
def test_another_coding_is_not_supported(shared_server, coding):
    status, headers, body = shared_server.ask("POST", PATH, BODY, {"Content-Encoding": coding})

    assert (status, headers["accept-encoding"]) == (501, "gzip, deflate")
    assert "Unsupported compression type" in json.loads(body)["error"]


def test_other_routes_leave_compression_alone(shared_server):
    status, headers, body = shared_server.ask("GET", "/v2", headers={"Accept-Encoding": "gzip"})

    assert (status, headers.get("content-encoding"), json.loads(body)["name"]) == (200, None, "naiad")
