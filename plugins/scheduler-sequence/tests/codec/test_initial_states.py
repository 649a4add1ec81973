"""What a sequence starts with: zeros, the content of files, and the words of what is wrong with them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_config import InstanceKind, ModelInstanceGroup
from naiad_config.text import read_text
from naiad_scheduler_sequence.codec.states import KeptState, kept_states

from .driven import config_of


def state(text: str, directory: Path = Path("/nowhere"), max_batch_size: int = 4) -> KeptState:
    config = read_text(
        config_of(f'state {{ input_name: "in" output_name: "out" {text} }}', max_batch_size=max_batch_size), file=""
    ).config
    (result,) = kept_states(config, directory)
    return result


def initial(dims: str, kind: str, source: str) -> str:
    return f'data_type: {kind} dims: {dims} initial_state {{ name: "i" data_type: {kind} dims: {dims} {source} }}'


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("data_type: TYPE_FP32 dims: [ 2, -1 ]", (1, 2, 1)),
        (initial("[ 2, 3 ]", "TYPE_FP32", "zero_data: true"), (1, 2, 3)),
    ],
)
def test_a_state_without_content_is_zeros_of_its_dims(text: str, shape: tuple[int, ...]) -> None:
    result = state(text)

    assert result.initial.shape == shape
    assert result.initial.dtype == np.float32
    assert not result.initial.any()


def test_strings_start_empty() -> None:
    assert state("data_type: TYPE_STRING dims: [ 2 ]").initial.tolist() == [[b"", b""]]


def test_without_batching_there_is_no_batch_dimension() -> None:
    assert state("data_type: TYPE_FP32 dims: [ 2 ]", max_batch_size=0).initial.shape == (2,)


def test_a_file_holds_the_elements_row_by_row(tmp_path: Path) -> None:
    (tmp_path / "initial_state").mkdir()
    (tmp_path / "initial_state" / "start").write_bytes(np.arange(6, dtype=np.int16).tobytes() + b"more")

    result = state(initial("[ 2, 3 ]", "TYPE_INT16", 'data_file: "start"'), tmp_path)

    assert result.initial.tolist() == [[[0, 1, 2], [3, 4, 5]]]


def test_a_file_that_cannot_be_used_is_named_with_its_state_and_model(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"initial_state file '.*/initial_state/start' .*'in' of model 'm'"):
        state(initial("[ 2 ]", "TYPE_INT64", 'data_file: "start"'), tmp_path)


@pytest.mark.parametrize(
    ("same_buffer", "kind", "phrase"),
    [
        (False, InstanceKind.KIND_GPU, "needs 'use_same_buffer_for_input_output'"),
        (True, InstanceKind.KIND_CPU, "needs the virtual memory of a GPU"),
        (True, InstanceKind.KIND_GPU, ""),
    ],
)
def test_growable_memory_needs_one_buffer_and_a_gpu(same_buffer: bool, kind: InstanceKind, phrase: str) -> None:
    text = f"""state {{ input_name: "in" output_name: "out" data_type: TYPE_FP32 dims: [ 1 ] use_growable_memory: true
        use_same_buffer_for_input_output: {str(same_buffer).lower()} }}"""
    config = read_text(config_of(text), file="").config
    config = replace(config, instance_group=(ModelInstanceGroup(kind=kind),))

    try:
        kept_states(config, Path("/nowhere"))
    except InvalidArgumentError as error:
        message = str(error)
    else:
        message = ""

    assert phrase in message
    assert bool(phrase) == bool(message)


@pytest.mark.parametrize("dims", ["[ 1000000, 1000000, 1000000 ]", f"[ {2**40}, {2**40} ]"])
def test_a_state_that_no_memory_holds_is_named(dims: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"state 'in' of model 'm' with dims .* is too large for memory"):
        state(f"data_type: TYPE_FP32 dims: {dims}")
