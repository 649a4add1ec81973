"""Inputs from shared memory, and outputs to it."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, NotFoundError
from naiad.types import Response
from naiad_grpc.codec import Encoder, OutputForm
from naiad_grpc.messages import message_class
from naiad_shared_memory.request_io import SharedOutput
from naiad_tensors.tensors import Tensor


def shared(region="r", byte_size=8, offset=None, **more):
    parameters = {
        "shared_memory_region": {"string_param": region},
        "shared_memory_byte_size": {"int64_param": byte_size},
    }
    if offset is not None:
        parameters["shared_memory_offset"] = {"int64_param": offset}
    return {"parameters": parameters | more}


def test_the_region_is_read_for_each_request_anew(decoder, ask, regions):
    message = ask(("X", "INT8", [1], shared(byte_size=1))).SerializeToString()

    read = []
    for content in (b"\x01", b"\x02"):
        regions.add("r", content)
        read.append(decoder.decode(message)[0].inputs["X"].array.tolist())

    assert read == [[1], [2]]


def test_strings_and_truths_can_be_shared_too(decode, ask, regions):
    regions.add("r", b"\x01\x00\x00\x00a" + b"\x02")

    request, _ = decode(
        ask(("S", "BYTES", [1], shared(byte_size=5)), ("B", "BOOL", [1], shared(byte_size=1, offset=5)))
    )

    assert request.inputs["S"].array.tolist() == [b"a"]
    assert request.inputs["B"].array.tolist() == [True]


def test_only_inputs_that_are_not_shared_have_raw_contents(decode, ask, regions):
    regions.add("r", b"\x07")

    request, _ = decode(
        ask(("A", "INT8", [1]), ("B", "INT8", [1], shared(byte_size=1)), ("C", "INT8", [1]), raw=[b"\x01", b"\x02"])
    )

    assert {name: each.array.tolist() for name, each in request.inputs.items()} == {"A": [1], "B": [7], "C": [2]}
    assert list(request.inputs) == ["A", "B", "C"]


def test_typed_contents_may_stand_beside_a_shared_input(decode, ask, regions):
    regions.add("r", b"\x07")

    request, _ = decode(
        ask(("A", "INT8", [1], shared(byte_size=1)), ("B", "INT8", [1], {"contents": {"int_contents": [3]}}))
    )

    assert [each.array.tolist() for each in request.inputs.values()] == [[7], [3]]


def test_contents_beside_a_region_are_refused(decode, ask):
    with pytest.raises(
        InvalidArgumentError,
        match="unexpected 'content' provided when using shared memory for input tensor 'X' for model 'm'",
    ):
        decode(ask(("X", "INT8", [1], {**shared(byte_size=1), "contents": {"int_contents": [1]}})))


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        (
            {"shared_memory_region": {"int64_param": 1}},
            "'shared_memory_region' parameter for input 'X', expected string",
        ),
        ({"shared_memory_region": {"string_param": "r"}}, "needs 'shared_memory_byte_size' beside it for input 'X'"),
        (shared(byte_size=-1)["parameters"], "'shared_memory_byte_size' for input 'X', expected value >= 0"),
        (shared(offset=-1)["parameters"], "'shared_memory_offset' for input 'X', expected value >= 0"),
        (
            shared(shared_memory_offset={"uint64_param": 1})["parameters"],
            "'shared_memory_offset' parameter for input 'X', expected int64_param",
        ),
    ],
)
def test_references_that_are_invalid_are_refused(decode, ask, parameters, reason):
    with pytest.raises(InvalidArgumentError, match=reason):
        decode(ask(("X", "FP32", [2], {"parameters": parameters})))


def test_an_output_can_go_to_a_region(decode, ask, regions):
    region = regions.add("r", bytes(16))
    message = ask()
    message.outputs.add(name="Y", **shared(offset=4))
    message.outputs.add(name="Z").parameters["classification"].int64_param = 2

    request, form = decode(message)

    assert request.requested == ("Y", "Z")
    assert form.outputs == {"Y": OutputForm(target=SharedOutput(region, 4, 8)), "Z": OutputForm(classes=2)}


@pytest.mark.parametrize(
    ("region", "error", "reason"),
    [("unknown", NotFoundError, "'unknown'"), ("r", InvalidArgumentError, "Invalid offset")],
)
def test_the_location_of_an_output_is_checked_before_the_model_runs(decode, ask, regions, region, error, reason):
    regions.add("r", bytes(7))
    message = ask()
    message.outputs.add(name="Y", **shared(region))

    with pytest.raises(error, match=reason):
        decode(message)


def test_an_output_cannot_be_both_shared_and_classified(decode, ask):
    message = ask()
    message.outputs.add(name="Y", **shared(classification={"int64_param": 1}))

    with pytest.raises(InvalidArgumentError, match="Output can't set both 'shared_memory_region' and 'classification'"):
        decode(message)


@pytest.mark.parametrize(
    ("datatype", "array", "written"),
    [
        ("INT8", np.array([1, 2], np.int8), b"\x01\x02"),
        ("BYTES", np.array([b"a"], object), b"\x01\x00\x00\x00a"),
        ("FP64", np.zeros(1000), bytes(8000)),
    ],
)
def test_a_shared_output_is_written_and_its_contents_are_empty(decode, ask, regions, datatype, array, written):
    region = regions.add("r", b"\xee" * 9000)
    message = ask()
    message.outputs.add(name="Y", **shared(byte_size=8192, offset=1))
    _, form = decode(message)
    outputs = {"X": Tensor("X", "INT8", (1,), np.array([3], np.int8)), "Y": Tensor("Y", datatype, array.shape, array)}

    encoded = b"".join(Encoder(None, None).encode(Response("m", 1, "", outputs), form))

    response = message_class("ModelInferResponse").FromString(encoded)
    assert list(response.raw_output_contents) == [b"\x03", b""]
    assert (response.outputs[1].datatype, list(response.outputs[1].shape)) == (datatype, list(array.shape))
    assert bytes(region.content[1 : 1 + len(written)]) == written
    assert region.content[0] == region.content[1 + len(written)] == 0xEE
