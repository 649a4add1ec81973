"""Responses as bytes and back, and bytes that are none."""

import json
import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naiad.types import Response
from naiad_cache_redis.codec import ForeignValueError, decode, encode
from naiad_kit.caches import CachedResponse
from naiad_tensors.tensors import Tensor
from naiad_testing.caches import sample_responses

SAMPLES = sample_responses()


def written(header: object, *contents: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<4sI", b"NRC1", len(text)) + text + b"".join(contents)


@pytest.mark.parametrize("response", SAMPLES, ids=lambda response: response.outputs[0].name)
def test_a_response_survives_the_way_there_and_back(response: CachedResponse) -> None:
    back = decode(encode(response))

    assert [(each.name, each.datatype, each.shape) for each in back.outputs] == [
        (each.name, each.datatype, each.shape) for each in response.outputs
    ]
    for one, other in zip(back.outputs, response.outputs, strict=True):
        np.testing.assert_array_equal(one.array, other.array)
        assert one.array.dtype == other.array.dtype
        assert not one.array.flags.writeable
    assert dict(back.parameters) == dict(response.parameters)
    assert back.byte_size == response.byte_size


def test_nothing_is_pickled() -> None:
    tensor = Tensor.of("o", np.arange(3, dtype=np.int32))

    content = encode(CachedResponse.of(Response("m", 1, "", {"o": tensor}, {"a": True})))

    head = json.dumps({"outputs": [["o", "INT32", [3], 12]], "parameters": {"a": True}}).encode()
    assert content == b"NRC1" + struct.pack("<I", len(head)) + head + tensor.array.tobytes()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"NRC1",
        b"NRC2" + encode(SAMPLES[0])[4:],
        encode(SAMPLES[-1])[:-1],
        encode(SAMPLES[-1]) + b"\0",
        written([]),
        written({"outputs": []}),
        written({"outputs": 3, "parameters": {}}),
        written({"outputs": [["o", "FP32", [1], 4]], "parameters": {}}),
        written({"outputs": [["o", "FP32", [2], 4]], "parameters": {}}, b"1234"),
        written({"outputs": [["o", "FP32", [-1], 4]], "parameters": {}}, b"1234"),
        written({"outputs": [["o", "FP32", ["1"], 4]], "parameters": {}}, b"1234"),
        written({"outputs": [["o", "FP32", [1], -4]], "parameters": {}}),
        written({"outputs": [["o", "object", [1], 8]], "parameters": {}}, b"12345678"),
        written({"outputs": [[1, "FP32", [1], 4]], "parameters": {}}, b"1234"),
        written({"outputs": [["o", "BYTES", [1], 9]], "parameters": {}}, struct.pack("<Q", 2) + b"a"),
        written({"outputs": [["o", "BYTES", [1], 9]], "parameters": {}}, struct.pack("<Q", 0) + b"a"),
        written({"outputs": [["o", "BYTES", [1 << 40], 8]], "parameters": {}}, struct.pack("<Q", 0)),
        written({"outputs": [], "parameters": {"a": None}}),
        written({"outputs": [], "parameters": {"a": [1]}}),
    ],
)
def test_what_is_no_response_is_refused(content: bytes) -> None:
    with pytest.raises(ForeignValueError, match="are not a response"):
        decode(content)


@given(st.data())
@settings(max_examples=200)
def test_changed_bytes_are_refused_or_read_and_nothing_else(data: st.DataObject) -> None:
    content = bytearray(encode(SAMPLES[-1])[: data.draw(st.integers(0, 4000))])
    for offset, value in data.draw(st.lists(st.tuples(st.integers(0, 3999), st.integers(0, 255)), max_size=5)):
        if offset < len(content):
            content[offset] = value

    with suppress(ForeignValueError):
        decode(bytes(content))
