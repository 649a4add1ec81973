"""The samples that `model_warmup` describes, as requests."""

from pathlib import Path

import numpy as np
import pytest

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_config.text import parse_text
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_warmup.configured import configured_samples
from naiad_warmup.samples import WarmupSample


def samples(text: str, folder: Path = Path("/nowhere")) -> list[WarmupSample]:
    config = parse_text(f'name: "m" {text}')
    return list(configured_samples(ModelContext(config, 3, folder, folder / "3")))


def only_input(text: str, folder: Path = Path("/nowhere"), batching: bool = False) -> np.ndarray:
    inputs = f'inputs {{ key: "A" value {{ {text} }} }}'
    sample_text = f'max_batch_size: {int(batching)} model_warmup {{ name: "s" batch_size: 1 {inputs} }}'
    (sample,) = samples(sample_text, folder)
    tensor = sample.requests[0].inputs["A"]
    assert tensor.shape == tensor.array.shape
    return tensor.array


def test_a_model_without_warmup_has_no_samples() -> None:
    assert samples("") == []


def test_a_sample_is_as_many_requests_as_its_batch_size_says() -> None:
    (sample,) = samples("""max_batch_size: 8 model_warmup { name: "s" batch_size: 3 count: 2
        inputs { key: "A" value { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } }""")

    assert (sample.name, sample.count, len(sample.requests)) == ("s", 2, 3)
    first = sample.requests[0]
    assert isinstance(first, Request)
    assert (first.model_name, first.version, first.inputs["A"].shape) == ("m", 3, (1, 2))


def test_a_sample_of_batch_size_0_is_skipped_and_a_count_of_0_is_1() -> None:
    one, *others = samples("""model_warmup [ { name: "none" }, { name: "one" batch_size: 1 } ]""")

    assert (one.name, one.count, others) == ("one", 1, [])


def test_without_batching_the_dims_are_the_shape() -> None:
    assert only_input("data_type: TYPE_FP32 dims: [ 2, 3 ] zero_data: true").shape == (2, 3)


def test_a_shape_tensor_has_no_batch_dimension() -> None:
    (sample,) = samples("""max_batch_size: 8
        input { name: "A" data_type: TYPE_INT32 dims: [ 2 ] is_shape_tensor: true }
        model_warmup { name: "s" batch_size: 1 inputs {
            key: "A" value { data_type: TYPE_INT32 dims: [ 2 ] zero_data: true } } }""")

    assert sample.requests[0].inputs["A"].shape == (2,)


@pytest.mark.parametrize("wire", sorted(TENSOR_TYPES))
def test_zeros_of_every_datatype(wire: str) -> None:
    kind = TENSOR_TYPES[wire]

    array = only_input(f"data_type: {kind.config.name} dims: [ 3 ] zero_data: true")

    assert array.dtype == kind.dtype
    assert array.tolist() == [b""] * 3 if wire == "BYTES" else not array.any()


@pytest.mark.parametrize("wire", sorted(TENSOR_TYPES))
def test_random_values_of_every_datatype_are_the_same_each_time(wire: str) -> None:
    kind = TENSOR_TYPES[wire]
    text = f"data_type: {kind.config.name} dims: [ 64 ] random_data: true"

    array, again = only_input(text), only_input(text)

    assert array.dtype == kind.dtype
    if wire == "BYTES":
        assert array.tolist() == [b""] * 64
    else:
        assert array.tobytes() == again.tobytes()
        assert len(set(array.tobytes())) > 1


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "warmup").mkdir()
    return tmp_path


def test_a_file_gives_the_first_bytes_it_needs(model: Path) -> None:
    (model / "warmup" / "raw").write_bytes(np.arange(10, dtype=np.int16).tobytes())

    array = only_input('data_type: TYPE_INT16 dims: [ 2, 2 ] input_data_file: "raw"', model, batching=True)

    assert array.tolist() == [[[0, 1], [2, 3]]]


def test_a_file_that_is_not_there_is_named(model: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"warmup file '.*/warmup/raw' cannot"):
        only_input('data_type: TYPE_FP32 dims: [ 2 ] input_data_file: "raw"', model)


def test_an_input_without_any_data_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="sample 's' of model 'm' gives no data for input 'A': set one of"):
        only_input("data_type: TYPE_FP32 dims: [ 2 ]")


@pytest.mark.parametrize("data", ["zero_data: true", "random_data: true"])
@pytest.mark.parametrize("datatype", ["TYPE_FP32", "TYPE_STRING"])
def test_dims_that_fit_into_no_memory_are_reported_with_the_sample_and_the_input(datatype: str, data: str) -> None:
    message = r"warmup sample 's' of model 'm' cannot have input 'A' with the dims \[4611686018427387904, 8\]: "

    with pytest.raises(InvalidArgumentError, match=message):
        only_input(f"data_type: {datatype} dims: [ 4611686018427387904, 8 ] {data}")
