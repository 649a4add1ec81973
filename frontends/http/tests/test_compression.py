"""gzip and deflate both ways, and which coding an answer gets."""

import gzip
import os
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from naiad_http.compression import MAX_MEMBERS, compress, decompress, preferred_coding
from naiad_http.statuses import HttpError


@given(st.binary(max_size=500), st.sampled_from(["gzip", "deflate"]))
def test_what_is_compressed_comes_back(content, coding):
    assert decompress(compress(content, coding), coding, 500) == content


def test_what_clients_compress_is_understood():
    assert decompress(b"abc", "identity", 10) == b"abc"
    assert decompress(gzip.compress(b"abc"), "gzip", 10) == b"abc"
    assert decompress(zlib.compress(b"abc"), "Deflate ", 10) == b"abc"
    assert decompress(gzip.compress(b"abc") + gzip.compress(b"def"), "gzip", 10) == b"abcdef"


def test_a_bomb_is_refused_before_it_unfolds():
    with pytest.raises(HttpError, match="1001 bytes") as caught:
        decompress(gzip.compress(bytes(10_000_000)), "gzip", 1000)

    assert caught.value.status == 400


def test_many_members_share_the_limit():
    with pytest.raises(HttpError, match="exceeds the maximum"):
        decompress(gzip.compress(bytes(600)) * 2, "gzip", 1000)


def test_as_many_streams_as_the_limit_make_one_body_and_one_more_is_refused():
    whole = decompress(gzip.compress(b"ab") * MAX_MEMBERS, "gzip", 1000)

    assert whole == b"ab" * MAX_MEMBERS
    with pytest.raises(HttpError, match="more than 64 compressed streams; send it as one stream"):
        decompress(gzip.compress(b"ab") * (MAX_MEMBERS + 1), "gzip", 1000)


def test_a_stream_may_end_anywhere_within_what_zlib_gets_at_a_time():
    first, second = os.urandom(65536 - 40), os.urandom(200_000)

    assert decompress(gzip.compress(first, 0) + gzip.compress(second, 0), "gzip", 300_000) == first + second


BROKEN = gzip.compress(b"abc", mtime=0)


@pytest.mark.parametrize("body", [b"plain text", BROKEN[:-4], BROKEN[:12]])
def test_a_broken_body_is_refused(body):
    with pytest.raises(HttpError) as caught:
        decompress(body, "gzip", 1000)

    assert caught.value.status == 400


@pytest.mark.parametrize("coding", ["br", "gzip, deflate", "zstd"])
def test_another_coding_is_not_supported(coding):
    with pytest.raises(HttpError, match="Unsupported compression type") as caught:
        decompress(b"", coding, 1000)

    assert caught.value.status == 501
    assert caught.value.headers == (("Accept-Encoding", "gzip, deflate"),)


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        ("", "identity"),
        ("br", "identity"),
        ("gzip", "gzip"),
        ("gzip, deflate", "gzip"),
        ("deflate, gzip", "deflate"),
        ("gzip;q=0.5, deflate;q=0.8", "deflate"),
        ("gzip;q=0", "identity"),
        ("gzip; q=0.2, identity; q=0.9", "identity"),
        ("GZIP", "gzip"),
        ("gzip;q=often", "identity"),
        ("*", "identity"),
    ],
)
def test_the_coding_that_is_liked_best_wins(header, coding):
    assert preferred_coding(header) == coding
