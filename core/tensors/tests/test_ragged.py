"""Batches of requests whose tensors differ in length: what is joined, what is made for the batch, what is cut."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naiad.backend import Batch, Reply
from naiad.errors import ModelFailedError
from naiad.types import Request
from naiad_config.text import parse_text
from naiad_tensors.ragged import BatchLayout, batch_input_shape, layout_of
from naiad_tensors.tensors import Tensor

RAGGED = """
    name: "ragged" max_batch_size: 8
    input { name: "A" data_type: TYPE_FP32 dims: [ -1, 2 ] allow_ragged_batch: true }
    input { name: "B" data_type: TYPE_INT32 dims: [ 1 ] }
    output { name: "X" data_type: TYPE_FP32 dims: [ -1, 2 ] }
    output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }
"""
SCATTERED = RAGGED + 'batch_output { target_name: "X" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "A" }'


def laid_out(config: str) -> BatchLayout:
    layout = layout_of(parse_text(config))
    assert layout is not None
    return layout


def making(kind: str, data_type: str = "TYPE_INT32") -> BatchLayout:
    return laid_out(
        f'{RAGGED} batch_input {{ kind: {kind} target_name: "T" target_name: "U" data_type: {data_type} '
        'source_input: "A" }'
    )


def batch(layout: BatchLayout, *rows: int) -> Batch:
    """Requests whose A has so many rows, each; their elements count upwards through the whole batch."""
    requests, first = [], 0
    for length in rows:
        array = np.arange(first, first + 2 * length, dtype=np.float32).reshape(1, length, 2)
        requests.append(request(A=array, B=np.array([[length]], dtype=np.int32)))
        first += 2 * length
    return Batch(requests, [1] * len(rows), layout=layout)


def request(**inputs: Any) -> Request:
    return Request("ragged", {name: Tensor.of(name, value) for name, value in inputs.items()})


def test_a_model_of_rows_has_no_layout() -> None:
    config = 'name: "m" max_batch_size: 4 input { name: "A" data_type: TYPE_FP32 dims: [ -1 ] }'

    assert layout_of(parse_text(config)) is None


def test_a_ragged_input_is_all_elements_in_one_dimension() -> None:
    of = batch(laid_out(RAGGED), 1, 3, 2)

    joined = of.input("A")

    assert joined.tolist() == [float(number) for number in range(12)]
    assert of.input("A") is joined
    assert of.input_done_ns > 0
    assert of.input("B").tolist() == [[1], [3], [2]]


def test_a_ragged_input_of_one_request_has_one_dimension_too_and_is_no_copy() -> None:
    of = batch(laid_out(RAGGED), 3)

    assert of.input("A").shape == (6,)
    assert np.shares_memory(of.input("A"), of.requests[0].inputs["A"].array)


def test_ragged_strings_keep_every_byte() -> None:
    layout = laid_out('name: "m" max_batch_size: 4 input { name: "A" dims: [ -1 ] allow_ragged_batch: true }')
    texts = [np.array([[b"a\0"]], dtype=object), np.array([[b"", b"b"]], dtype=object)]

    joined = Batch([request(A=text) for text in texts], [1, 1], layout=layout).input("A")

    assert joined.tolist() == [b"a\0", b"", b"b"]


@pytest.mark.parametrize(
    ("kind", "created"),
    [
        ("BATCH_ELEMENT_COUNT", [2, 6, 4]),
        ("BATCH_ACCUMULATED_ELEMENT_COUNT", [2, 8, 12]),
        ("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", [0, 2, 8, 12]),
        ("BATCH_ITEM_SHAPE", [[1, 2], [3, 2], [2, 2]]),
        ("BATCH_ITEM_SHAPE_FLATTEN", [1, 2, 3, 2, 2, 2]),
    ],
)
@pytest.mark.parametrize(("data_type", "dtype"), [("TYPE_INT32", np.int32), ("TYPE_FP32", np.float32)])
def test_a_batch_input_tells_of_the_whole_batch(kind: str, created: list[Any], data_type: str, dtype: type) -> None:
    of = batch(making(kind, data_type), 1, 3, 2)

    assert of.input_names == ("A", "B", "T", "U")
    assert of.batch_input_names == ("T", "U")
    for target in of.batch_input_names:
        assert of.input(target).tolist() == created
        assert of.input(target).dtype == dtype


def test_the_largest_element_count_is_reported_by_a_shape() -> None:
    of = batch(making("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE"), 1, 3, 2)

    assert of.input("T").shape == (6,)


def test_a_request_of_several_items_counts_as_one_and_has_a_shape_for_each() -> None:
    big = request(A=np.zeros((3, 5, 2), dtype=np.float32))
    small = request(A=np.zeros((1, 4, 2), dtype=np.float32))

    def values_of(kind: str) -> list[Any]:
        return list(Batch([big, small], [3, 1], layout=making(kind)).input("T").tolist())

    assert values_of("BATCH_ELEMENT_COUNT") == [30, 8]
    assert values_of("BATCH_ITEM_SHAPE") == [[5, 2], [5, 2], [5, 2], [4, 2]]


def test_the_batch_input_of_an_absent_source_is_absent() -> None:
    of = Batch([request(B=np.array([[1]], dtype=np.int32))], [1], layout=making("BATCH_ELEMENT_COUNT"))

    assert of.input_names == ("B",)
    with pytest.raises(KeyError, match="A"):
        of.input("T")


def test_a_batch_of_one_of_the_requests_is_laid_out_alike() -> None:
    of = batch(making("BATCH_ELEMENT_COUNT"), 1, 3)

    alone = of.alone(1)

    assert alone.input("T").tolist() == [6]
    assert alone.input("A").tolist() == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_the_model_must_take_batch_inputs_of_these_shapes() -> None:
    config = parse_text(
        RAGGED
        + 'batch_input { kind: BATCH_ITEM_SHAPE target_name: "T" source_input: "A" data_type: TYPE_INT32 }'
        + 'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "U" source_input: "A" data_type: TYPE_INT32 }'
    )

    assert [batch_input_shape(each, config) for each in config.batch_input] == [(-1, 2), (-1,)]


def test_a_scattered_output_gets_the_shape_of_its_source() -> None:
    of = batch(laid_out(SCATTERED), 1, 3)
    flat = np.arange(8, dtype=np.float32)

    first, second = of.cut({"X": flat, "Y": np.array([[7], [8]], dtype=np.int32)})

    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert (first.outputs["X"].tolist(), first.outputs["Y"].tolist()) == ([[[0.0, 1.0]]], [[7]])
    assert (second.outputs["X"].shape, second.outputs["Y"].tolist()) == ((1, 3, 2), [[8]])
    assert np.shares_memory(second.outputs["X"], flat)


def test_replies_to_single_requests_are_shaped_alike() -> None:
    of = batch(laid_out(SCATTERED), 1, 3)
    error = ModelFailedError("no")

    first, second = of.cut([error, Reply({"X": np.zeros(6, dtype=np.float32)}, {"key": 1})])

    assert first is error
    assert isinstance(second, Reply)
    assert (second.outputs["X"].shape, second.parameters) == ((1, 3, 2), {"key": 1})


def test_what_is_not_scattered_in_a_reply_to_a_single_request_stays_as_it_is() -> None:
    of = batch(laid_out(SCATTERED), 1, 3)
    rows = np.array([7], dtype=np.int32)

    both, alone = of.cut([Reply({"X": np.zeros(2, dtype=np.float32), "Y": rows}), Reply({"Y": rows})])

    assert isinstance(both, Reply)
    assert isinstance(alone, Reply)
    assert (both.outputs["X"].shape, both.outputs["Y"] is rows) == ((1, 1, 2), True)
    assert list(alone.outputs) == ["Y"]
    assert alone.outputs["Y"] is rows


def test_a_reply_to_a_single_request_may_have_a_shape_of_its_own() -> None:
    layout = laid_out(SCATTERED)

    (reply,) = batch(layout, 3).cut([Reply({"X": np.zeros((1, 7, 2))})])

    assert isinstance(reply, Reply)
    assert reply.outputs["X"].shape == (1, 7, 2)


def test_a_fixed_dim_of_a_scattered_output_stays() -> None:
    layout = laid_out(SCATTERED.replace('"X" data_type: TYPE_FP32 dims: [ -1, 2 ]', '"X" dims: [ 3 ]'))

    replies = batch(layout, 1, 5).cut({"X": np.zeros(6)})

    assert [reply.outputs["X"].shape for reply in replies if isinstance(reply, Reply)] == [(1, 3), (1, 3)]


def test_a_scattered_output_without_its_optional_source_is_reported() -> None:
    layout = laid_out(SCATTERED)
    of = Batch([request(B=np.array([[1]], dtype=np.int32))], [1], layout=layout)
    own = Reply({"X": np.zeros(2)})

    assert of.cut([own]) == [own]
    with pytest.raises(ModelFailedError, match=r"'X', which takes its shape from the optional input 'A', .* send 'A'"):
        of.cut({"X": np.zeros(2)})


@given(lengths=st.lists(st.integers(0, 5), min_size=1, max_size=6), sizes=st.data())
def test_what_was_joined_comes_apart_as_it_was(lengths: list[int], sizes: st.DataObject) -> None:
    layout = laid_out(SCATTERED.replace("max_batch_size: 8", "max_batch_size: 64"))
    items = [sizes.draw(st.integers(1, 3)) for _ in lengths]
    arrays = [np.random.default_rng(0).random((item, length, 2)) for item, length in zip(items, lengths, strict=True)]
    of = Batch([request(A=array) for array in arrays], items, layout=layout)

    replies = of.cut({"X": of.input("A")})

    for reply, array in zip(replies, arrays, strict=True):
        assert isinstance(reply, Reply)
        assert np.array_equal(reply.outputs["X"], array)


@pytest.mark.parametrize("elements", [0, 7, 9])
def test_a_scattered_output_of_another_size_fails_the_batch(elements: int) -> None:
    layout = laid_out(SCATTERED)

    with pytest.raises(ModelFailedError, match=f"produced {elements} elements for output 'X'.* take 8 together"):
        batch(layout, 1, 3).cut({"X": np.zeros(elements)})


def test_another_output_still_needs_a_row_for_each_item() -> None:
    layout = laid_out(SCATTERED)

    with pytest.raises(ModelFailedError, match="output 'Y' has 3 rows for a batch of 2"):
        batch(layout, 1, 3).cut({"X": np.zeros(8), "Y": np.zeros((3, 1))})


SHAPES = """
    name: "shapes" max_batch_size: 8 platform: "tensorrt_plan"
    input { name: "A" data_type: TYPE_FP32 dims: [ -1 ] }
    input { name: "S" data_type: TYPE_INT32 dims: [ 2 ] is_shape_tensor: true }
    output { name: "O" data_type: TYPE_INT32 dims: [ 2 ] is_shape_tensor: true }
"""


def test_the_batch_size_stands_in_front_of_the_values_of_a_shape_tensor() -> None:
    inputs = {"A": np.zeros((2, 4), dtype=np.float32), "S": np.array([3, 5], dtype=np.int32)}

    of = Batch([request(**inputs), request(**inputs)], [2, 2], layout=laid_out(SHAPES))

    assert of.input("S").tolist() == [4, 3, 5]
    assert of.input("S").dtype == np.int32
    assert of.alone(0).input("S").tolist() == [2, 3, 5]


def test_clients_get_a_shape_tensor_without_the_batch_size() -> None:
    layout = laid_out(SHAPES)
    of = Batch([request(), request()], [2, 1], layout=layout)

    replies = of.cut({"O": np.array([3, 7, 9], dtype=np.int32)})

    assert [reply.outputs["O"].tolist() for reply in replies if isinstance(reply, Reply)] == [[7, 9], [7, 9]]


def test_shape_tensors_of_a_model_without_batching_are_ordinary() -> None:
    assert layout_of(parse_text(SHAPES.replace("max_batch_size: 8", ""))) is None


@pytest.mark.parametrize(("kind", "shape"), [("BATCH_ITEM_SHAPE", (2, 0)), ("BATCH_ITEM_SHAPE_FLATTEN", (0,))])
def test_items_without_dims_have_shapes_without_numbers(kind: str, shape: tuple[int, ...]) -> None:
    layout = laid_out(
        'name: "m" max_batch_size: 8 input { name: "A" data_type: TYPE_FP32 dims: [ 1 ] reshape: { shape: [ ] } } '
        f'batch_input {{ kind: {kind} target_name: "T" source_input: "A" data_type: TYPE_INT32 }}'
    )
    requests = [request(A=np.zeros(1, np.float32))] * 2

    assert layout.input("T", requests, [1, 1]).shape == shape


UNBATCHED = SCATTERED.replace("max_batch_size: 8", "max_batch_size: 0").replace(" allow_ragged_batch: true", "")


@pytest.mark.parametrize(
    ("kind", "created"),
    [("BATCH_ELEMENT_COUNT", [6]), ("BATCH_ITEM_SHAPE", [[3, 2]]), ("BATCH_ITEM_SHAPE_FLATTEN", [3, 2])],
)
def test_without_batching_the_whole_shape_counts_and_outputs_come_whole(kind: str, created: list[Any]) -> None:
    generated = f'batch_input {{ kind: {kind} target_name: "T" source_input: "A" data_type: TYPE_INT32 }}'
    of = Batch([request(A=np.zeros((3, 2), np.float32))], [1], layout=laid_out(UNBATCHED + generated))

    (reply,) = of.cut({"X": np.zeros(6), "Y": np.array([7, 8])})

    assert of.input("T").tolist() == created
    assert isinstance(reply, Reply)
    assert (reply.outputs["X"].shape, reply.outputs["Y"].tolist()) == ((3, 2), [7, 8])
