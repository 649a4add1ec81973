"""The binary tensor data extension on the wire: the worked examples of its document, and raw requests."""

import struct

import numpy as np
import pytest

from . import models
from .running import Answer, Running, Wire, post

MIXES = """
import numpy as np
from naiad_custom import BOOL, FP32, UINT32, Array, model

@model(outputs="output0")
def mixes(input0: Array[UINT32, 2, 2], input1: Array[BOOL, 3]) -> Array[FP32, 3, 2]:
    return np.where(input1[:, None], input0[0], input0[1]).astype(np.float32)
"""

SPLITS = """
import numpy as np
from naiad_custom import FP32, Array, model

@model(outputs=("output0", "output1"))
def splits(input: Array[FP32, 4]) -> tuple[Array[FP32, 3, 1], Array[FP32, 3, 1]]:
    return input[:3, None], input[1:, None]
"""

COUNTS = """
from naiad_custom import INT16, INT64, Array, model

@model(max_batch_size=4)
def counts(x: Array[INT16, 2, -1]) -> Array[INT64, 1]:
    return x.reshape(len(x), -1).sum(axis=1, keepdims=True, dtype="int64")
"""

SPELLS = """
import numpy as np
from naiad_custom import BYTES, Array, model

@model(max_batch_size={size})
def spells(x: Array[BYTES, 1]) -> Array[BYTES, 1]:
    return np.array([each[::-1] for each in x.ravel()], object).reshape(x.shape)
"""

SQUARES = """
from naiad_custom import FP32, Array, model

@model
def squares(x: Array[FP32, -1, -1]) -> Array[FP32, -1, -1]:
    return x * x
"""

HEADER = b"""{
"model_name" : "mixes",
"inputs" : [
{
"name" : "input0",
"shape" : [ 2, 2 ],
"datatype" : "UINT32",
"parameters" : {
"binary_data_size" : 16
}
},
{
"name" : "input1",
"shape" : [ 3 ],
"datatype" : "BOOL",
"parameters" : {
"binary_data_size" : 3
}
}
],
"outputs" : [
{
"name" : "output0",
"parameters" : {
"binary_data" : true
}
}
]
}
"""
TENSORS = struct.pack("<4I3?", 1, 2, 3, 2**32 - 256, True, False, True)
RESULT = struct.pack("<6f", 1, 2, 3, 2**32 - 256, 1, 2)


def posted(path: str, body: bytes, header_length: int) -> bytes:
    """A request as the document of the extension writes it."""
    return post(path, body, Content_Type="application/octet-stream", Inference_Header_Content_Length=header_length)


@pytest.fixture(scope="module")
def asked(shared: Running) -> Running:
    """The module's server with the models of this module."""
    sources = {"mixes": MIXES, "splits": SPLITS, "counts": COUNTS, "squares": SQUARES}
    sources |= {"spells": SPELLS.format(size=0), "spells_many": SPELLS.format(size=4)}
    for name, source in sources.items():
        models.write(shared.repository, name, source)
        assert shared.load(name).status == 200
    return shared


@pytest.fixture
def wire(asked: Running, wire: Wire) -> Wire:
    """A plain connection to the server with these models."""
    return wire


def parts(answer: Answer | None) -> tuple[dict, bytes]:
    """The JSON of a good binary answer, and the bytes behind it."""
    assert answer is not None
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/octet-stream"
    return answer.document, answer.body[int(answer.headers["inference-header-content-length"]) :]


def test_the_worked_example_of_a_binary_request(wire: Wire) -> None:
    assert len(TENSORS) == 19

    wire.send(posted("/v2/models/mixes/infer", HEADER + TENSORS, len(HEADER)))
    document, content = parts(wire.answer())

    assert document["outputs"] == [
        {"name": "output0", "shape": [3, 2], "datatype": "FP32", "parameters": {"binary_data_size": 24}}
    ]
    assert content == RESULT


def test_the_worked_example_sent_byte_by_byte(wire: Wire) -> None:
    for byte in posted("/v2/models/mixes/infer", HEADER + TENSORS, len(HEADER)):
        wire.send(bytes([byte]))

    assert parts(wire.answer())[1] == RESULT


def test_the_worked_example_of_a_raw_request(wire: Wire) -> None:
    wire.send(posted("/v2/models/splits/infer", struct.pack("<4f", 1, 2, 3, 4), 0))
    document, content = parts(wire.answer())

    assert document["outputs"] == [
        {"name": name, "shape": [3, 1], "datatype": "FP32", "parameters": {"binary_data_size": 12}}
        for name in ("output0", "output1")
    ]
    assert content == struct.pack("<6f", 1, 2, 3, 2, 3, 4)


def test_examples_one_behind_the_other_are_answered_in_order(wire: Wire) -> None:
    first = posted("/v2/models/mixes/infer", HEADER + TENSORS, len(HEADER))
    second = posted("/v2/models/splits/infer", struct.pack("<4f", 1, 2, 3, 4), 0)

    wire.send(first + second + first)

    assert [len(parts(wire.answer())[1]) for _ in range(3)] == [24, 24, 24]


def outputs_of(server: Running, request: dict, **parameters: object) -> list[dict]:
    given = {"name": "input", "datatype": "FP32", "shape": [4], "data": [1, 2, 3, 4]}
    answer = server.ask("POST", "/v2/models/splits/infer", {"inputs": [given], "parameters": parameters, **request})
    assert answer.status == 200, answer.body
    assert ("inference-header-content-length" in answer.headers) == (
        answer.headers["content-type"] == "application/octet-stream"
    )
    return answer.document["outputs"]


def test_binary_data_output_counts_for_outputs_that_are_not_listed(asked: Running, server: Running) -> None:
    unlisted = outputs_of(asked, {}, binary_data_output=True)
    listed = outputs_of(asked, {"outputs": [{"name": "output1"}]}, binary_data_output=True)

    assert [each["parameters"] for each in unlisted] == [{"binary_data_size": 12}] * 2
    assert listed == [{"name": "output1", "datatype": "FP32", "shape": [3, 1], "data": [2.0, 3.0, 4.0]}]


def test_each_output_may_be_wanted_in_another_form(asked: Running, server: Running) -> None:
    wanted = [{"name": "output1", "parameters": {"binary_data": True}}, {"name": "output0"}]

    outputs = {each["name"]: each for each in outputs_of(asked, {"outputs": wanted})}

    assert outputs["output1"]["parameters"] == {"binary_data_size": 12}
    assert outputs["output0"]["data"] == [1.0, 2.0, 3.0]


# Raw requests


def raw(server: Running, model: str, content: bytes) -> Answer:
    return server.ask("POST", f"/v2/models/{model}/infer", content, {"Inference-Header-Content-Length": "0"})


@pytest.mark.parametrize("columns", [0, 1, 7])
def test_the_variable_dimension_of_a_raw_request_follows_from_its_size(
    asked: Running, server: Running, columns: int
) -> None:
    array = np.arange(2 * columns, dtype=np.int16)

    document, content = parts(raw(asked, "counts", array.tobytes()))

    assert document["outputs"][0]["shape"] == [1, 1]
    assert content == struct.pack("<q", array.sum())


@pytest.mark.parametrize(("model", "shape"), [("spells", [1]), ("spells_many", [1, 1])])
def test_the_body_of_a_raw_request_for_strings_is_the_string(
    asked: Running, server: Running, model: str, shape: list[int]
) -> None:
    document, content = parts(raw(asked, model, b"\0\xffnaiad"))

    assert (document["outputs"][0]["datatype"], document["outputs"][0]["shape"]) == ("BYTES", shape)
    assert content == struct.pack("<I", 7) + b"daian\xff\0"


@pytest.mark.parametrize(
    ("model", "content", "told"),
    [
        ("custom_add_sub", bytes(16), r"must only have 1 input"),
        ("squares", bytes(16), r"more than one variable-sized dimension"),
        ("splits", bytes(15), r"Expected 16, got 15"),
        ("splits", bytes(17), r"Expected 16, got 17"),
        ("splits", b"", r"Expected 16, got 0"),
        ("counts", bytes(6), r"multiple of 4, got 6"),
        ("nobody", bytes(16), r"unknown model: 'nobody' is not found"),
    ],
)
def test_raw_requests_that_leave_the_shape_open_are_refused(
    asked: Running, server: Running, model: str, content: bytes, told: str
) -> None:
    answer = raw(asked, model, content)

    assert answer.status == (404 if model == "nobody" else 400)
    assert told in answer.error
