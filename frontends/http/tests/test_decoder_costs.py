"""Every decoder of HTTP is linear in what a client sends, and never keeps the event loop for long."""

import asyncio
import gzip
import json
import zlib
from functools import cache
from types import SimpleNamespace

import pytest

from naiad.errors import InvalidArgumentError, NotFoundError
from naiad_config import DataType, ModelConfig, ModelInput
from naiad_http.chunks import ChunkReader
from naiad_http.codec import Decoder
from naiad_http.codec.load_requests import read_load_request
from naiad_http.codec.request_head import RequestHead
from naiad_http.compression import decompress
from naiad_http.incoming import LONGEST_HEAD
from naiad_http.infer import Inference
from naiad_http.routes.documents import MAX_BYTES, read_document
from naiad_http.statuses import HttpError
from naiad_testing.cost import check_cost, measure_cost

LIMIT = 1 << 26


def _decode_json(text):
    Decoder(LIMIT, lambda *_: None, lambda *_: None).decode(RequestHead("m"), text, b"")


def _infer_json(content, datatype="FP32", count=1):
    return b'{"inputs":[{"name":"X","datatype":"%b","shape":[%d],"data":[%b]}]}' % (datatype.encode(), count, content)


def test_lists_beside_values_cost_one_pass_however_deep_they_are():
    def nested(size):
        count = size // 2
        return _infer_json(b"[" * 98 + b"1" + b"]" * 98 + b",1" * (count - 1), count=count)

    check_cost(_decode_json, nested, 80_000, bytes_per_byte=60)


def test_lists_of_lists_cost_one_pass_for_each_level_that_is_sent():
    def nested(size):
        count = size // 199
        return _infer_json(b",".join([b"[" * 98 + b"1" + b"]" * 98] * count), count=count)

    check_cost(_decode_json, nested, 50_000, bytes_per_byte=80)


def test_a_body_of_many_compressed_streams_is_refused_in_linear_time():
    check_cost(
        lambda body: decompress(body, "deflate", LIMIT),
        lambda size: zlib.compress(b"") * (size // 8),
        1 << 20,
        bytes_per_byte=1,
        refusals=(HttpError,),
    )


def test_a_compressed_body_is_read_in_linear_time():
    check_cost(
        lambda body: decompress(body, "gzip", LIMIT),
        lambda size: gzip.compress(bytes(size // 64)) * 64,
        1 << 20,
        bytes_per_byte=1100,
    )


_JSON_SIZE = 100_000
"""Two pieces, and four of twice as much."""


@pytest.fixture
def inference(fake_server):
    return Inference(fake_server, LIMIT)


@pytest.fixture
def infer_json(inference):
    """Decode a JSON body as the frontend does."""

    async def decode(text):
        return await inference.decode_large(RequestHead("m"), text, b"", 0)

    return decode


@pytest.mark.parametrize("value", [b"1", b"1.25", b"-123456.75"])
def test_a_large_json_tensor_of_numbers(infer_json, value):
    check_cost(infer_json, lambda size: _numbers(value, size), _JSON_SIZE, bytes_per_byte=60)


def test_a_large_json_tensor_of_strings(infer_json):
    check_cost(infer_json, lambda size: _numbers(b'"ab"', size, "BYTES"), _JSON_SIZE, bytes_per_byte=60)


@pytest.mark.parametrize("content", [b"[]", b"[[[[1]]]]", b'{"a":1}', b'":["'])
def test_a_large_body_of_anything_else(infer_json, content):
    check_cost(infer_json, lambda size: _numbers(content, size), _JSON_SIZE, bytes_per_byte=60)


def _numbers(value, size, datatype="FP32"):
    count = size // (len(value) + 1)
    return _infer_json(b",".join([value] * count), datatype, count)


def test_binary_strings(inference):
    def input_of(size):
        count = size // 5
        tensor = {"name": "X", "datatype": "BYTES", "shape": [count], "parameters": {"binary_data_size": 5 * count}}
        return json.dumps({"inputs": [tensor]}).encode() + b"#" + b"\x01\x00\x00\x00x" * count

    async def decode(body):
        front, _, rest = body.partition(b"#")
        return await inference.decode_large(RequestHead("m", header_length=len(front)), front, rest, 0)

    check_cost(decode, input_of, 60_000, bytes_per_byte=20)


@pytest.mark.parametrize(
    ("kind", "dims", "value"),
    [
        (DataType.TYPE_STRING, (1,), b"a" * 2_000_000),
        (DataType.TYPE_BOOL, (-1,), True),
        (DataType.TYPE_INT8, (-1,), 97),
    ],
)
def test_raw_strings_and_booleans_are_decoded_on_a_thread(fake_server, kind, dims, value):
    fake_server.model_config = lambda *_: ModelConfig(
        name="m", input=(ModelInput(name="X", data_type=kind, dims=dims),)
    )
    inference, body, head = (
        Inference(fake_server, LIMIT),
        memoryview(b"a" * 2_000_000),
        RequestHead("m", header_length=0),
    )

    assert inference.is_large(head, b"", body) == (kind is not DataType.TYPE_INT8)
    assert not inference.is_large(head, b"", body[:900_000])
    assert inference.decoded_bytes(head, b"", body) == 2_000_000
    request, _ = asyncio.run(inference.decode_large(head, b"", body, 0))
    assert request.inputs["X"].array.ravel()[0] == value


def test_a_body_for_an_unknown_model_is_not_decoded(fake_server, infer_json):
    def unknown(name, version):
        raise NotFoundError(f"unknown model '{name}'")

    fake_server.model_config = unknown
    text = _numbers(b"1", _JSON_SIZE)

    with pytest.raises(NotFoundError):
        asyncio.run(infer_json(text))
    assert measure_cost(lambda: infer_json(text)).peak_bytes < 50_000


def test_binary_strings_for_an_unknown_model_are_not_unpacked(fake_server):
    def unknown(name, version):
        raise NotFoundError(f"unknown model '{name}'")

    fake_server.model_config = unknown
    inference = Inference(fake_server, LIMIT)
    tensor = {"name": "X", "datatype": "BYTES", "shape": [200_000], "parameters": {"binary_data_size": 800_000}}
    front, rest = json.dumps({"inputs": [tensor]}).encode(), bytes(800_000)
    request_head = RequestHead("m", header_length=len(front))

    inference.threads.close()  # not even a thread is used

    assert inference.is_large(request_head, front, rest)
    with pytest.raises(NotFoundError):
        asyncio.run(inference.decode_large(request_head, front, rest, 0))
    assert measure_cost(lambda: inference.decode_large(request_head, front, rest, 0)).peak_bytes < 50_000


def test_more_strings_than_the_model_takes_are_not_unpacked(fake_server):
    strings = ModelInput(name="X", data_type=DataType.TYPE_STRING, dims=(2,))
    fake_server.model_config = lambda *_: ModelConfig(name="m", max_batch_size=8, input=(strings,))
    inference = Inference(fake_server, LIMIT)
    tensor = {"name": "X", "datatype": "BYTES", "shape": [100_000, 2], "parameters": {"binary_data_size": 800_000}}
    front, rest = json.dumps({"inputs": [tensor]}).encode(), bytes(800_000)
    request_head = RequestHead("m", header_length=len(front))

    with pytest.raises(InvalidArgumentError, match="has 200000 strings, but model 'm' takes at most 16"):
        asyncio.run(inference.decode_large(request_head, front, rest, 0))
    cost = measure_cost(lambda: inference.decode_large(request_head, front, rest, 0))
    assert cost.peak_bytes < 100_000


def test_a_generate_request_of_many_members(inference):
    def input_of(size):
        return b"{%b}" % b",".join(b'"k%d":1' % number for number in range(size // 10))

    check_cost(
        lambda body: inference.decode_large_generate(RequestHead("m"), body, 0), input_of, 70_000, bytes_per_byte=60
    )


def test_a_generate_request_of_a_large_array(inference):
    check_cost(
        lambda body: inference.decode_large_generate(RequestHead("m"), body, 0),
        lambda size: b'{"X":[%b]}' % b",".join([b"1"] * (size // 2)),
        _JSON_SIZE,
        bytes_per_byte=60,
    )


def _load(size):
    return b'{"parameters":{"config":"{\\"max_batch_size\\":0}","file:1/a":"%b"}}' % (b"eHh4" * (size // 4))


@pytest.mark.parametrize(
    ("input_of", "bytes_per_byte"),
    [
        (_load, 4),
        (lambda size: _load(size).replace(b"eHh4" * 16, b"eHh4" * 15 + b"e\\/Hh"), 4),
        (lambda size: b'{"parameters":{"file:1/a":"%b' % (b"e" * size), 4),
        (lambda size: b'{"parameters":{"config":"%b"}}' % (b'\\"' * (size // 2)), 16),
        (lambda size: b'{"parameters":{"%b":1}}' % (b"a" * size), 16),
    ],
    ids=["file", "slashes", "no end", "escapes", "name"],
)
def test_a_load_request_with_large_files(inference, input_of, bytes_per_byte):
    async def decode(body):
        return await inference.threads.run(lambda: read_load_request(body))

    check_cost(decode, input_of, 1 << 19, bytes_per_byte=bytes_per_byte)


@pytest.mark.parametrize("value", [b"[],", b'{"a":{}},', b"1,"])
@pytest.mark.parametrize("last", [b"1", b"NaN"])
def test_the_document_of_settings_regions_and_the_index(value, last):
    async def decode(body):
        async def receive():
            return {"type": "http.request", "body": body}

        await read_document(SimpleNamespace(receive=receive))

    def input_of(size):
        return b'{"a":[%b%b]}' % (value * (size // len(value) - 20), last)

    check_cost(decode, input_of, MAX_BYTES // 4, bytes_per_byte=80)


def test_a_compressed_body_of_nothing_but_lists(infer_json):
    """Its cost grows with the lists: compressed, four times as many are three times the bytes."""
    compressed = cache(gzip.compress)

    def input_of(size):
        numbers = _numbers(b"[]", size)
        compressed(numbers)
        return numbers

    async def decode(numbers):
        return await infer_json(await asyncio.to_thread(decompress, compressed(numbers), "gzip", LIMIT))

    check_cost(decode, input_of, 100_000, bytes_per_byte=30)


def test_a_chunk_for_every_byte():
    async def read(content):
        reader = ChunkReader(LIMIT)
        for begin in range(0, len(content), LONGEST_HEAD):
            reader.feed(memoryview(content)[begin : begin + LONGEST_HEAD])
            await asyncio.sleep(0)  # each read from a socket has a turn of the loop

    check_cost(read, lambda size: b"1\r\na\r\n" * (size // 6), LONGEST_HEAD, bytes_per_byte=2)
