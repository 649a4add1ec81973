"""Raw requests: a body and nothing else."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_config import DataType, ModelConfig, ModelInput
from naiad_http.codec import Decoder, OutputForm, ResponseForm
from naiad_http.codec.request_head import RequestHead


def model(*dims, datatype=DataType.TYPE_FP32, batch=0, names=("X",)):
    inputs = tuple(ModelInput(name=name, data_type=datatype, dims=dims) for name in names)
    return ModelConfig(name="m", max_batch_size=batch, input=inputs)


def decode(config, body):
    return Decoder(1 << 20, lambda name, version: config, lambda name: None).decode(
        RequestHead("m", header_length=0), b"", body
    )


def test_the_body_is_the_one_input_and_all_outputs_are_bytes():
    request, form = decode(model(2, 2), np.arange(4, dtype=np.float32).tobytes())

    assert request.inputs["X"].array.tolist() == [[0, 1], [2, 3]]
    assert form == ResponseForm(OutputForm(binary=True))


def test_a_model_that_batches_gets_a_batch_of_one():
    request, _ = decode(model(2, batch=8), bytes(8))

    assert request.inputs["X"].shape == (1, 2)


def test_one_variable_dimension_follows_from_the_number_of_bytes():
    request, _ = decode(model(-1, 2), bytes(24))

    assert request.inputs["X"].shape == (3, 2)


def test_a_string_is_the_body_itself():
    request, _ = decode(model(1, datatype=DataType.TYPE_STRING, batch=4), b"a\x00b")

    assert request.inputs["X"].array.tolist() == [[b"a\x00b"]]


def test_a_boolean_body_is_read_as_truth():
    request, _ = decode(model(2, datatype=DataType.TYPE_BOOL), b"\x02\x00")

    assert request.inputs["X"].array.tolist() == [True, False]


@pytest.mark.parametrize(
    ("config", "size", "message"),
    [
        (model(1, names=("A", "B")), 4, "Raw request must only have 1 input to be deduced but got 2"),
        (model(-1, -1), 4, "can not be deduced because there are more than one variable-sized dimension"),
        (model(2, datatype=DataType.TYPE_STRING), 4, "the model must have input shape"),
        (model(2), 4, "input byte size mismatch for input 'X' for model 'm'. Expected 8, got 4"),
        (model(-1, 2), 12, "Expected a multiple of 8, got 12"),
        (model(-1, 0), 4, "input byte size mismatch"),
    ],
)
def test_a_body_without_a_unique_shape_is_refused(config, size, message):
    with pytest.raises(InvalidArgumentError) as caught:
        decode(config, bytes(size))

    assert message in str(caught.value)
