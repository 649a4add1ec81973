"""Compressed bodies, with Triton's client and by hand."""

import gzip
import json
import zlib

import numpy as np
import pytest

from .asking import tensor
from .running import Running

CODINGS = (None, "gzip", "deflate")
PATH = "/v2/models/echo/infer"
BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [3], "data": [1, 2, 3]}]}).encode()


@pytest.mark.parametrize("request_coding", CODINGS)
@pytest.mark.parametrize("response_coding", CODINGS)
@pytest.mark.parametrize("size", [1, 300_000])
@pytest.mark.parametrize("binary", [True, False])
def test_the_client_may_compress_both_ways(
    server: Running, request_coding: str | None, response_coding: str | None, size: int, binary: bool
) -> None:
    if size > 1 and not binary:
        size = 3_000  # the client takes seconds to write more as JSON
    array = np.arange(size, dtype=np.float32)

    with server.client() as client:
        result = client.infer(
            "echo",
            [tensor("x", array, binary=binary)],
            request_compression_algorithm=request_coding,
            response_compression_algorithm=response_coding,
        )

    np.testing.assert_array_equal(result.as_numpy("output"), array)


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("gzip;q=0.5, deflate;q=0.9", "deflate"),
        ("gzip;q=0.5, deflate;q=0.5", "gzip"),
        ("gzip;q=0, identity", None),
        ("identity;q=1, gzip;q=0.9", None),
        ("br", None),
        ("br, gzip;q=0.1", "gzip"),
        ("*", None),
        (";;q=,,gzip;q=much", None),
    ],
)
def test_the_answer_has_the_coding_that_the_client_likes_best(
    server: Running, accepted: str, coding: str | None
) -> None:
    answer = server.ask("POST", PATH, BODY, {"Accept-Encoding": accepted})

    content = {None: bytes, "gzip": gzip.decompress, "deflate": zlib.decompress}[coding](answer.body)
    assert (answer.status, answer.headers.get("content-encoding")) == (200, coding)
    assert json.loads(content)["outputs"][0]["data"] == [1.0, 2.0, 3.0]


def test_the_length_of_the_json_is_that_of_the_body_before_it_is_compressed(server: Running) -> None:
    head = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}]}
    text = json.dumps(head | {"parameters": {"binary_data_output": True}}).encode()
    body = zlib.compress(text + np.array([1, 2], np.float32).tobytes())

    headers = {"Content-Encoding": "deflate", "Inference-Header-Content-Length": str(len(text))}
    answer = server.ask("POST", PATH, body, headers | {"Accept-Encoding": "gzip"})

    content = gzip.decompress(answer.body)
    length = int(answer.headers["inference-header-content-length"])
    assert json.loads(content[:length])["outputs"][0]["parameters"] == {"binary_data_size": 8}
    assert content[length:] == np.array([1, 2], np.float32).tobytes()


def test_an_error_is_told_in_plain_text_to_a_client_that_takes_compressed_answers(server: Running) -> None:
    answer = server.ask("POST", "/v2/models/nobody/infer", BODY, {"Accept-Encoding": "gzip"})

    assert (answer.status, answer.headers.get("content-encoding")) == (404, None)
    assert "'nobody' is not found" in answer.error


@pytest.mark.parametrize("coding", ["br", "compress", "gzip, deflate", "x" * 1000])
def test_other_codings_are_not_supported(server: Running, coding: str) -> None:
    answer = server.ask("POST", PATH, BODY, {"Content-Encoding": coding})

    assert (answer.status, answer.headers["accept-encoding"]) == (501, "gzip, deflate")
    assert "Unsupported compression type" in answer.error


def test_other_routes_leave_compression_alone(server: Running) -> None:
    answer = server.ask("GET", "/v2", headers={"Accept-Encoding": "gzip"})

    assert (answer.status, answer.document["name"]) == (200, "naiad")
