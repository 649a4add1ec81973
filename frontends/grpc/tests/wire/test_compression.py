"""Compressed messages: gzip and deflate both ways, broken content, and bombs."""

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from naiad_grpc.statuses import Code, RpcError
from naiad_grpc.wire.compression import ENCODINGS, LEVELS, compress, decompress, largest

MOST = 100_000
ENCODERS = {"gzip": gzip.compress, "deflate": zlib.compress}


def failure(content, encoding, most=MOST):
    with pytest.raises(RpcError) as caught:
        decompress(content, encoding, most)
    return caught.value.code, caught.value.message


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("size", [0, 1, 1000, MOST])
def test_what_clients_compress_is_read_up_to_the_limit(encoding, size):
    assert decompress(ENCODERS[encoding](bytes(size)), encoding, MOST) == bytes(size)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_one_byte_above_the_limit_is_refused(encoding):
    code, reason = failure(ENCODERS[encoding](bytes(MOST + 1)), encoding)

    assert (code, reason) == (Code.RESOURCE_EXHAUSTED, "Decompressed message larger than max")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_bomb_is_not_inflated_beyond_the_limit(encoding):
    bomb = ENCODERS[encoding](bytes(50_000_000))
    tracemalloc.start()

    code, _ = failure(bomb, encoding)

    assert code is Code.RESOURCE_EXHAUSTED
    assert tracemalloc.get_traced_memory()[1] < 3 * MOST
    tracemalloc.stop()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_content_becomes_larger_than_is_charged_for_it(encoding):
    for size in (1, 100, 10_000, 1_000_000, 20_000_000):
        compressed = ENCODERS[encoding](bytes(size), 9)

        assert largest(len(compressed), 1 << 31) >= size
    assert largest(len(compressed), 500) == 500


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("change", ["empty", "cut", "garbage", "checksum", "more", "two members"])
def test_broken_content_is_an_internal_error(encoding, change):
    good = ENCODERS[encoding](b"x" * 1000)
    broken = {
        "empty": b"",
        "cut": good[:-1],
        "garbage": b"\xff" * 50,
        "checksum": good[:-6] + bytes(6) if encoding == "gzip" else good[:-4] + bytes(4),
        "more": good + b"rest",
        "two members": good + good,
    }[change]

    assert failure(broken, encoding)[0] is Code.INTERNAL


def test_the_encodings_are_not_taken_for_each_other():
    assert failure(gzip.compress(b"x"), "deflate")[0] is Code.INTERNAL
    assert failure(zlib.compress(b"x"), "gzip")[0] is Code.INTERNAL
    raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    assert failure(raw.compress(b"x") + raw.flush(), "deflate")[0] is Code.INTERNAL


@given(parts=some.lists(some.binary(max_size=2000), max_size=5), level=some.sampled_from([1, 6, 9]))
def test_what_we_compress_is_what_clients_read(parts, level):
    gzipped, deflated = compress(parts, "gzip", level), compress(parts, "deflate", level)

    assert gzip.decompress(gzipped) == zlib.decompress(deflated) == b"".join(parts)


@given(content=some.binary(max_size=300), encoding=some.sampled_from(sorted(ENCODINGS)))
def test_any_bytes_are_a_message_or_a_status(content, encoding):
    try:
        size, code = len(decompress(content, encoding, 50)), Code.INTERNAL
    except RpcError as error:
        size, code = 0, error.code

    assert size <= 50
    assert code in (Code.INTERNAL, Code.RESOURCE_EXHAUSTED)


def test_the_levels_are_those_of_the_option():
    assert LEVELS == {"none": 0, "low": 1, "medium": 6, "high": 9}
