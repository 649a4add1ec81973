"""Requests that name shared memory: inputs are read from there, outputs are wanted there."""

import numpy as np
import pytest

from naiad.errors import NotFoundError
from naiad_http.codec import OutputForm
from naiad_shared_memory.request_io import SharedOutput

from .regions import location, output, tensor


def test_an_input_is_read_from_its_offset(regions):
    regions.put("r", bytes(4) + np.array([1.5, 2.5], np.float32).tobytes() + bytes(4))

    request, _ = regions.decode({"inputs": [tensor(shape=(1, 2), parameters=location("r", 8, 4))]})

    array = request.inputs["X"].array
    assert (array.dtype, array.shape, array.tolist()) == (np.float32, (1, 2), [[1.5, 2.5]])
    assert array.flags.aligned


def test_strings_and_booleans_are_read_from_shared_memory(regions):
    regions.put("strings", b"\x02\x00\x00\x00a\x00\x00\x00\x00\x00")
    regions.put("bits", b"\x00\x07")

    request, _ = regions.decode(
        {
            "inputs": [
                tensor("S", "BYTES", (2, 1), location("strings", 10)),
                tensor("B", "BOOL", (2,), location("bits", 2)),
            ]
        }
    )

    assert request.inputs["S"].array.tolist() == [[b"a\x00"], [b""]]
    assert request.inputs["B"].array.tolist() == [False, True]
    assert (~request.inputs["B"].array).tolist() == [True, False]


@pytest.mark.parametrize("datatype", ["FP32", "BYTES", "BOOL"])
def test_a_tensor_without_elements_takes_no_bytes(regions, datatype):
    regions.put("r", bytes(4))

    request, _ = regions.decode({"inputs": [tensor("X", datatype, (0, 3), location("r", 0))]})

    assert request.inputs["X"].array.shape == (0, 3)


def test_tensors_of_all_sources_may_be_mixed_and_keep_their_order(regions):
    regions.put("r", b"\x01\x02")
    sources = [
        tensor("shared", "INT8", (1,), location("r", 1, 1)),
        tensor("json", "INT8", (1,), data=[3]),
        tensor("binary", "INT8", (1,), {"binary_data_size": 1}),
        tensor("shared too", "INT8", (1,), location("r", 1)),
    ]

    request, _ = regions.decode({"inputs": sources}, b"\x04")

    values = {name: each.array.tolist() for name, each in request.inputs.items()}
    assert list(values.items()) == [("shared", [2]), ("json", [3]), ("binary", [4]), ("shared too", [1])]


def test_shared_and_binary_tensors_keep_their_order(regions):
    regions.put("r", b"\x01")
    sources = [tensor("S", "INT8", (1,), location("r", 1)), tensor("B", "INT8", (1,), {"binary_data_size": 1})]

    request, _ = regions.decode({"inputs": sources}, b"\x02")

    assert list(request.inputs) == ["S", "B"]


@pytest.mark.parametrize("content", [None, b""], ids=["all JSON", "JSON in front"])
def test_a_cached_request_finds_the_region_that_has_the_name_now(regions, content):
    document = {"inputs": [tensor("X", "INT8", (1,), location("r", 1))], "outputs": [output(**location("r", 1))]}

    first = regions.put("r", b"\x01")
    before = regions.decode(document, content)
    second = regions.put("r", b"\x02")
    after = regions.decode(document, content)
    del regions.by_name["r"]

    assert [request.inputs["X"].array.tolist() for request, _ in (before, after)] == [[1], [2]]
    assert [form.outputs["Y"].target.region for _, form in (before, after)] == [first, second]
    with pytest.raises(NotFoundError, match="'r'"):
        regions.decode(document, content)


def test_a_cached_request_sees_what_the_client_wrote_since(regions):
    region = regions.put("r", b"\x01")
    document = {"inputs": [tensor("X", "INT8", (1,), location("r", 1))]}

    before, _ = regions.decode(document)
    region.memory[0] = 2
    after, _ = regions.decode(document)

    assert [each.inputs["X"].array.tolist() for each in (before, after)] == [[1], [2]]


def test_requests_that_are_all_json_and_name_shared_memory_are_cached(regions):
    regions.put("r", b"\x01")

    for number in range(3):
        request, _ = regions.decode({"id": str(number), "inputs": [tensor("X", "INT8", (1,), location("r", 1))]})
        assert request.id == str(number)
    regions.decode({"id": "9", "inputs": [tensor("X", "INT8", (1,), data=[1])]})

    assert len(regions.decoder._templates) == 1


def test_an_output_is_wanted_in_its_place_and_the_others_as_they_were(regions):
    region = regions.put("r", bytes(64))
    outputs = [
        output("A", binary_data=True),
        output("B", **location("r", 32, 8), binary_data=False),
        output("C", classification=2),
    ]

    request, form = regions.decode({"parameters": {"binary_data_output": True}, "inputs": [], "outputs": outputs})

    assert request.requested == ("A", "B", "C")
    assert form.unlisted == OutputForm(binary=True)
    assert form.outputs == {
        "A": OutputForm(binary=True),
        "B": OutputForm(target=SharedOutput(region, 8, 32)),
        "C": OutputForm(classes=2),
    }
