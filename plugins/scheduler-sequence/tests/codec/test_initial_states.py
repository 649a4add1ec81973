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


def test_a_file_of_strings_holds_a_length_in_front_of_each(tmp_path: Path) -> None:
    (tmp_path / "initial_state").mkdir()
    (tmp_path / "initial_state" / "start").write_bytes(b"\2\0\0\0ab\0\0\0\0")

    result = state(initial("[ 2 ]", "TYPE_STRING", 'data_file: "start"'), tmp_path)

    assert result.initial.tolist() == [[b"ab", b""]]


@pytest.mark.parametrize(
    ("kind", "content", "phrase"),
    [
        (
            "TYPE_INT64",
            b"12345678",
            "initial_state setting expects 16 bytes",
        ),
        ("TYPE_STRING", b"\2\0\0\0ab", "holds 1 strings, but its dims ask for 2"),
        ("TYPE_STRING", b"\2\0\0\0ab\7\0\0\0c", "ends within the string at byte 6"),
        ("TYPE_INT64", None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_holds_too_little_is_named(tmp_path: Path, kind: str, content: bytes | None, phrase: str) -> None:
    (tmp_path / "initial_state").mkdir()
    if content is not None:
        (tmp_path / "initial_state" / "start").write_bytes(content)

    with pytest.raises(InvalidArgumentError) as caught:
        state(initial("[ 2 ]", kind, 'data_file: "start"'), tmp_path)

    assert phrase in str(caught.value)
    assert "start" in str(caught.value)


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
