"""Requests that name shared memory: where inputs are read from, and where outputs are written."""

import numpy as np
import orjson
import pytest

from naiad.errors import NotFoundError
from naiad.types import Response
from naiad_http.codec import Encoder, OutputForm, ResponseForm
from naiad_shared_memory.request_io import SharedOutput
from naiad_tensors.tensors import Tensor

from .regions import FakeRegion, location, output, tensor


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


def test_an_output_is_wanted_in_its_location_and_the_others_as_they_were(regions):
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


def encode(form, *tensors):
    encoder = Encoder(lambda *_: True, lambda *_: ())
    encoded = encoder.encode(Response("m", 1, "", {each.name: each for each in tensors}), form)
    return orjson.loads(encoded.text)["outputs"], b"".join(encoded.buffers)


def placed(region, byte_size, offset=0):
    return OutputForm(target=SharedOutput(region, offset, byte_size))


def test_an_output_is_written_to_its_location_and_its_json_only_tells_of_it():
    region = FakeRegion("r", b"." * 10)

    outputs, content = encode(
        ResponseForm(outputs={"Y": placed(region, 6, 2)}), Tensor.of("Y", np.array([[1, 2]], "i2"))
    )

    assert outputs == [{"name": "Y", "datatype": "INT16", "shape": [1, 2]}]
    assert content == b""
    assert region.memory == b"..\x01\x00\x02\x00...."


def test_large_tensors_that_are_not_contiguous_are_written_in_row_major_order():
    array = np.arange(90_000, dtype=np.float32).reshape(300, 300).T
    region = FakeRegion("r", bytes(array.nbytes))

    encode(ResponseForm(outputs={"Y": placed(region, array.nbytes)}), Tensor.of("Y", array))

    assert np.array_equal(np.frombuffer(region.memory, np.float32).reshape(300, 300), array)
