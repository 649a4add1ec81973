"""Errors of user code that name the file, the line and what to write instead."""

import inspect
import logging

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, ModelFailedError
from naiad_custom import FP32, INT64, Array, model
from naiad_custom.hints import hint_of
from naiad_testing import serve


def line_of(function: object) -> int:
    return inspect.unwrap(function).__code__.co_firstlineno  # type: ignore[arg-type]


def test_another_datatype_is_reported_with_line_and_conversion_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    @model
    def wide(a: Array[FP32, 2]) -> Array[FP32, 2]:
        return a.astype(np.float64)

    with serve(wide) as client, pytest.raises(ModelFailedError) as raised:
        client.infer(a=[1, 2])

    assert f"{__file__}:{line_of(wide)}: " in str(raised.value)
    assert "returned a wrong array for output 'output': it is float64 and must be float32; " in str(raised.value)
    assert "return it as .astype(np.float32)" in str(raised.value)
    assert [record.exc_info is not None for record in caplog.records if record.levelno >= logging.ERROR] == [True]


def test_a_missing_dimension_is_reported_with_the_index_that_adds_it() -> None:
    @model(max_batch_size=8)
    def flat(a: Array[FP32, 2]) -> Array[FP32, 1]:
        return a.sum(axis=1)

    @model
    def single(a: Array[FP32, 2]) -> Array[FP32, 1]:
        return a.sum(keepdims=True)[0, ...]

    with serve(flat) as client, pytest.raises(ModelFailedError, match=r"shape \[1\] and .* return it as \[:, None\]"):
        client.infer(a=[[1, 2]])
    with serve(single) as client, pytest.raises(ModelFailedError, match=r"shape \[\] and .* return it as \[None\]"):
        client.infer(a=[1, 2])


def test_a_missing_batch_is_reported_with_a_row_for_each_item() -> None:
    @model(max_batch_size=8)
    def first(a: Array[FP32, 2]) -> Array[FP32, 2]:
        return a[0]

    with serve(first) as client, pytest.raises(ModelFailedError) as raised:
        client.infer(a=[[1, 2]])

    assert "it has shape [2] and must have 2 dimensions, of which the first is the batch" in str(raised.value)
    assert "return a row for each item of the batch, and so that of one item as [None]" in str(raised.value)


@pytest.mark.parametrize(
    ("value", "shown"), [([[1.0, 2.0]], "list"), ([[1.0], [2.0, 3.0]], "list"), ("x", "str"), (1.0, "float")]
)
def test_a_list_or_a_single_value_of_another_datatype_is_reported_with_the_array_to_make(
    value: object, shown: str
) -> None:
    @model
    def listed(a: Array[FP32, 2]) -> Array[FP32, 1, 2]:
        return value

    with serve(listed) as client, pytest.raises(ModelFailedError) as raised:
        client.infer(a=[1, 2])

    assert f"{__file__}:{line_of(listed)}: " in str(raised.value)
    assert f"it is a {shown} and " in str(raised.value)
    assert str(raised.value).endswith("return np.asarray(..., dtype=np.float32)")


def test_a_list_of_the_datatype_is_an_array() -> None:
    @model
    def listed(a: Array[FP32, 2]) -> Array[INT64, 2]:
        return [1, 2]

    with serve(listed) as client:
        assert client.infer(a=[1, 2])["output"].tolist() == [1, 2]


def test_a_tuple_in_place_of_one_array_is_reported_with_the_line_of_the_function() -> None:
    @model
    def tupled(a: Array[FP32, 2]) -> Array[FP32, 2]:
        return (a,)

    @model
    def nothing(a: Array[FP32, 2]) -> Array[FP32, 2]:
        return None

    with serve(tupled) as client, pytest.raises(ModelFailedError) as raised:
        client.infer(a=[1, 2])
    with serve(nothing) as client, pytest.raises(ModelFailedError) as empty:
        client.infer(a=[1, 2])

    assert f"{__file__}:{line_of(tupled)}: " in str(raised.value)
    assert "it is a tuple of 1 and must be one array; return that" in str(raised.value)
    assert str(empty.value).startswith(f"{__file__}:{line_of(nothing)}: ")
    assert "nothing' returned None, which has no array for output 'output'; return one array" in str(empty.value)


def test_a_write_to_an_input_is_reported_with_how_to_copy() -> None:
    @model
    def grow(a: Array[FP32, 2]) -> Array[FP32, 2]:
        a += 1
        return a

    with serve(grow) as client, pytest.raises(ModelFailedError) as raised:
        client.infer(a=[1, 2])

    advice = "inputs are read-only: copy one before you change it, as a = a.copy()"
    assert f"{__file__}:{line_of(grow) + 2}: {advice}" in str(raised.value)


def test_a_write_to_an_input_by_a_function_of_numpy_is_reported_where_it_is_called() -> None:
    @model
    def fill(a: Array[FP32, 2, 2]) -> Array[FP32, 2, 2]:
        np.fill_diagonal(a, 1)
        return a

    with serve(fill) as client, pytest.raises(ModelFailedError) as raised:
        client.infer(a=[[1, 2], [3, 4]])

    assert f"{__file__}:{line_of(fill) + 2}: " in str(raised.value)


def test_unknown_arguments_and_names_are_answered_with_those_there_are() -> None:
    with pytest.raises(TypeError) as argument:
        model(max_batchsize=8)  # type: ignore[call-overload]
    with pytest.raises(ImportError) as name:
        from naiad_custom import FLOAT32  # type: ignore[attr-defined]  # noqa: F401

    assert hint_of(argument.value) == "did you mean 'max_batch_size'?"
    assert hint_of(name.value).startswith("naiad_custom has BF16, BOOL, BYTES, FP16, FP32")
    assert hint_of(InvalidArgumentError("model() is fine")) == ""
