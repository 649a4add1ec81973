"""The binary tensor data extension on the wire: the worked examples of its document, and the forms of outputs."""

import json
import struct

import numpy as np
import pytest

import naiad_http
from naiad_testing import serve
from naiad_testing.backends import FakeBackend

from .conftest import Wire

HEADER = json.dumps(
    {
        "model_name": "mixes",
        "inputs": [
            {"name": "input0", "shape": [2, 2], "datatype": "UINT32", "parameters": {"binary_data_size": 16}},
            {"name": "input1", "shape": [3], "datatype": "BOOL", "parameters": {"binary_data_size": 3}},
        ],
        "outputs": [{"name": "output0", "parameters": {"binary_data": True}}],
    }
).encode()
TENSORS = struct.pack("<4I3?", 1, 2, 3, 2**32 - 256, True, False, True)
RESULT = struct.pack("<6f", 1, 2, 3, 2**32 - 256, 1, 2)
MIXES = """
input [{ name: "input0" data_type: TYPE_UINT32 dims: [2, 2] }, { name: "input1" data_type: TYPE_BOOL dims: [3] }]
output [{ name: "output0" data_type: TYPE_FP32 dims: [3, 2] }]
"""
SPLITS = """
input [{ name: "input" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "output0" data_type: TYPE_FP32 dims: [3, 1] }, { name: "output1" data_type: TYPE_FP32 dims: [3, 1] }]
"""


def answer(batch):
    """What the models of the document do."""
    if "input" in batch.input_names:
        tensor = batch.input("input")
        return {"output0": tensor[:3, None], "output1": tensor[1:, None]}
    rows = batch.input("input0")
    return {"output0": np.where(batch.input("input1")[:, None], rows[0], rows[1]).astype(np.float32)}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a server of both models."""
    folder, backend = tmp_path_factory.mktemp("models"), FakeBackend(answer=answer)
    backend.write(folder, "mixes", MIXES)
    backend.write(folder, "splits", SPLITS)
    options = {"http-port": 0, "http-address": "127.0.0.1"}
    with serve(folder, plugins=[backend, naiad_http], options=options) as client:
        yield "127.0.0.1", client.server.plugins.frontends()["http"].port


@pytest.fixture
def wire(address):
    """A plain connection to that server."""
    with Wire(address) as opened:
        yield opened


def posted(model, body, length=None):
    """A request as the document of the extension writes it."""
    lines = [f"POST /v2/models/{model}/infer HTTP/1.1", "Host: h", f"Content-Length: {len(body)}"]
    if length is not None:
        lines += ["Content-Type: application/octet-stream", f"Inference-Header-Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


MIXED = posted("mixes", HEADER + TENSORS, len(HEADER))
RAW = posted("splits", struct.pack("<4f", 1, 2, 3, 4), 0)


def parts(answered):
    """The JSON of a good binary answer, and the bytes behind it."""
    status, headers, body = answered
    assert (status, headers["content-type"]) == (200, "application/octet-stream")
    length = int(headers["inference-header-content-length"])
    return json.loads(body[:length])["outputs"], body[length:]


@pytest.mark.parametrize("step", [1, len(MIXED)], ids=["byte by byte", "whole"])
def test_the_worked_example_of_a_binary_request(wire, step):
    for start in range(0, len(MIXED), step):
        wire.send(MIXED[start : start + step])

    sizes = {"parameters": {"binary_data_size": 24}}
    assert parts(wire.answer()) == ([{"name": "output0", "datatype": "FP32", "shape": [3, 2], **sizes}], RESULT)


def test_the_worked_example_of_a_raw_request(wire):
    wire.send(RAW)

    outputs, content = parts(wire.answer())
    sizes = {"parameters": {"binary_data_size": 12}}
    assert outputs == [{"name": f"output{each}", "datatype": "FP32", "shape": [3, 1], **sizes} for each in (0, 1)]
    assert content == struct.pack("<6f", 1, 2, 3, 2, 3, 4)


def test_examples_one_behind_the_other_are_answered_in_order(wire):
    wire.send(MIXED + RAW + MIXED)

    assert [parts(wire.answer())[1] == RESULT for _ in range(3)] == [True, False, True]


@pytest.mark.parametrize(
    ("request_", "binary"),
    [
        ({"parameters": {"binary_data_output": True}}, {"output0": True, "output1": True}),
        ({"parameters": {"binary_data_output": True}, "outputs": [{"name": "output1"}]}, {"output1": False}),
        (
            {"outputs": [{"name": "output1", "parameters": {"binary_data": True}}, {"name": "output0"}]},
            {"output0": False, "output1": True},
        ),
        ({}, {"output0": False, "output1": False}),
    ],
    ids=["all binary", "listed", "each its own", "none"],
)
def test_each_output_comes_in_the_form_that_the_request_says(wire, request_, binary):
    tensor = {"name": "input", "datatype": "FP32", "shape": [4], "data": [1, 2, 3, 4]}
    wire.send(posted("splits", json.dumps({"inputs": [tensor], **request_}).encode()))

    _, headers, body = wire.answer()

    outputs = json.loads(body[: int(headers.get("inference-header-content-length", len(body)))])["outputs"]
    assert {each["name"]: "parameters" in each for each in outputs} == binary
    assert {each["name"]: each["data"] for each in outputs if "data" in each} == {
        name: [1.0, 2.0, 3.0] if name == "output0" else [2.0, 3.0, 4.0]
        for name, is_binary in binary.items()
        if not is_binary
    }


def test_a_large_raw_request_of_booleans_is_answered(shared_server):
    headers = {"Inference-Header-Content-Length": "0"}

    status, answered, body = shared_server.ask("POST", "/v2/models/mirror_bool/infer", b"\x00\x02" * 50_000, headers)

    assert status == 200
    assert body[int(answered["inference-header-content-length"]) :] == b"\x00\x01" * 50_000
