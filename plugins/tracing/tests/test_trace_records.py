"""The JSON form of traces."""

import json
from typing import Any

import numpy as np
import pytest

from naiad_tensors.tensors import Tensor
from naiad_tracing.trace_records import TensorRecord, Timestamp, TraceRecord, record_text, tensor_records, tensor_text


def objects(record: TraceRecord) -> list[dict[str, Any]]:
    return json.loads(f"[{record_text(record)}]")


def test_a_trace_is_an_identity_and_what_happened_in_the_order_of_time() -> None:
    record = TraceRecord(3, 0, "m", 2, "abc", (Timestamp(9, "REQUEST_END"), Timestamp(5, "REQUEST_START")))

    assert objects(record) == [
        {"id": 3, "model_name": "m", "model_version": 2, "request_id": "abc"},
        {"id": 3, "timestamps": [{"name": "REQUEST_START", "ns": 5}]},
        {"id": 3, "timestamps": [{"name": "REQUEST_END", "ns": 9}]},
    ]


def test_what_was_caused_names_its_parent_and_no_request_id_where_there_is_none() -> None:
    assert objects(TraceRecord(4, 3, "step", 1, "", ())) == [
        {"id": 4, "model_name": "step", "model_version": 1, "parent_id": 3}
    ]


def test_a_tensor_stands_at_its_time() -> None:
    content = np.array([[1, 2]], dtype=np.int32)
    record = TraceRecord(
        1, 0, "m", 1, "", (Timestamp(2, "B"), TensorRecord(1, "TENSOR_QUEUE_INPUT", "x", "INT32", (1, 2), content))
    )

    tensor = {"name": "x", "data": "1,2", "shape": "1,2", "dtype": "INT32"}
    assert objects(record)[1] == {"id": 1, "activity": "TENSOR_QUEUE_INPUT", "tensor": tensor}


@pytest.mark.parametrize(
    ("datatype", "elements", "dtype", "text"),
    [
        ("INT8", [-5, 65], np.int8, "-5,65"),
        ("UINT64", [2**64 - 1], np.uint64, "18446744073709551615"),
        ("BOOL", [True, False], np.bool_, "1,0"),
        ("FP16", [1.5, 0.1, 65504, 1 / 3], np.float16, "1.5,0.1,6.55e+04,0.33325"),
        ("FP32", [0.1, 16777216, 1e-30, 1 / 3], np.float32, "0.1,16777216,1e-30,0.333333343"),
        ("FP64", [0.1, -0.0, 1e300, 1 / 3], np.float64, "0.1,-0,1e+300,0.33333333333333331"),
        ("FP32", [np.nan, np.inf], np.float32, "nan,inf"),
        ("BF16", [0x3FC0], np.uint16, "1.5"),
        ("FP32", [], np.float32, ""),
    ],
)
def test_elements_are_reported_in_full(datatype: str, elements: list[Any], dtype: Any, text: str) -> None:
    assert tensor_text(datatype, np.array(elements, dtype=dtype)) == text


def test_elements_of_bytes_can_be_distinguished_whatever_they_hold() -> None:
    elements = np.array([b'a"\n,', "é".encode(), b"\xff\x00"], dtype=object)

    text = tensor_text("BYTES", elements)

    assert json.loads(f"[{text}]") == ['a"\n,', "é", "\\xff\x00"]


def test_a_tensor_is_copied_because_its_memory_may_be_used_anew() -> None:
    array = np.array([1.0], dtype=np.float32)

    (entry,) = tensor_records(7, "TENSOR_QUEUE_INPUT", [Tensor.of("x", array)])
    array[0] = 2.0

    assert (entry.ns, entry.name, entry.content.tolist()) == (7, "x", [1.0])


class OnADevice:
    def __dlpack__(self, *, stream: Any = None) -> Any:
        raise BufferError("not in host memory")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def test_a_tensor_that_the_host_cannot_read_is_reported_without_its_elements() -> None:
    entries = tuple(tensor_records(1, "A", [Tensor("x", "FP32", (2,), OnADevice())]))

    report = objects(TraceRecord(1, 0, "m", 1, "", entries))[1]

    assert report["tensor"] == {"name": "x", "data": "", "shape": "2", "dtype": "FP32"}


@pytest.mark.parametrize("array", [np.zeros(1000, np.float64), np.array([b"x" * 8000], dtype=object)])
def test_the_size_of_a_trace_counts_its_tensors(array: np.ndarray) -> None:
    record = TraceRecord(1, 0, "m", 1, "", tuple(tensor_records(1, "A", [Tensor.of("x", array)])))

    assert 8000 < record.byte_size < 9000


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_float_can_be_read_back_from_its_text(dtype: Any) -> None:
    numbers = np.random.default_rng(0).standard_normal(3000).astype(dtype)
    numbers[:2] = np.finfo(dtype).max, np.finfo(dtype).tiny

    text = tensor_text("FP", numbers)

    assert np.array([float(each) for each in text.split(",")], dtype=dtype).tolist() == numbers.tolist()
