"""Outputs that are written to shared memory."""

import numpy as np
import orjson
import pytest

from naiad.errors import InvalidArgumentError
from naiad.types import Response, Tensor
from naiad_http.codec import Encoder, OutputForm, ResponseForm
from naiad_shared_memory.request_io import SharedOutput

from .regions import FakeRegion


def encode(form, *tensors):
    encoder = Encoder(lambda *_: True, lambda *_: ())
    encoded = encoder.encode(Response("m", 1, "", {each.name: each for each in tensors}), form)
    return orjson.loads(encoded.text)["outputs"], b"".join(encoded.buffers)


def placed(region, byte_size, offset=0):
    return OutputForm(target=SharedOutput(region, offset, byte_size))


def test_an_output_is_written_to_its_place_and_its_json_only_tells_of_it():
    region = FakeRegion("r", b"." * 10)

    outputs, content = encode(
        ResponseForm(outputs={"Y": placed(region, 6, 2)}), Tensor.of("Y", np.array([[1, 2]], "i2"))
    )

    assert outputs == [{"name": "Y", "datatype": "INT16", "shape": [1, 2]}]
    assert content == b""
    assert region.memory == b"..\x01\x00\x02\x00...."


def test_strings_are_written_with_their_lengths():
    region = FakeRegion("r", bytes(8))

    encode(ResponseForm(outputs={"Y": placed(region, 8)}), Tensor.of("Y", np.array([b"ab"], object)))

    assert region.memory == b"\x02\x00\x00\x00ab\x00\x00"


def test_large_tensors_that_are_not_contiguous_are_written_in_row_major_order():
    array = np.arange(90_000, dtype=np.float32).reshape(300, 300).T
    region = FakeRegion("r", bytes(array.nbytes))

    encode(ResponseForm(outputs={"Y": placed(region, array.nbytes)}), Tensor.of("Y", array))

    assert np.array_equal(np.frombuffer(region.memory, np.float32).reshape(300, 300), array)


def test_a_tensor_without_elements_is_written_as_nothing():
    region = FakeRegion("r", b"..")

    outputs, _ = encode(ResponseForm(outputs={"Y": placed(region, 0)}), Tensor.of("Y", np.zeros((0, 2), np.float32)))

    assert outputs == [{"name": "Y", "datatype": "FP32", "shape": [0, 2]}]
    assert region.memory == b".."


def test_outputs_of_all_forms_may_be_mixed():
    region = FakeRegion("r", bytes(1))
    forms = {"A": OutputForm(), "B": placed(region, 1), "C": OutputForm(binary=True)}

    outputs, content = encode(ResponseForm(outputs=forms), *(Tensor.of(name, np.array([7], np.int8)) for name in "ABC"))

    assert [list(each)[3:] for each in outputs] == [["data"], [], ["parameters"]]
    assert (content, bytes(region.memory)) == (b"\x07", b"\x07")


def test_an_output_that_needs_more_than_its_place_is_an_error():
    region = FakeRegion("r", bytes(8))

    with pytest.raises(InvalidArgumentError, match="'Y' needs 8 bytes"):
        encode(ResponseForm(outputs={"Y": placed(region, 4)}), Tensor.of("Y", np.zeros(2, np.float32)))
