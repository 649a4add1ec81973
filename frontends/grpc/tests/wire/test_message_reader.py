"""Framed messages: prefixes, lengths and flags, however the data of a stream is cut."""

import random
import resource
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from naiad_grpc.statuses import Code, RpcError
from naiad_grpc.wire.message_reader import MessageReader, prefix

MOST = 1000


def framed(content, flag=0):
    return bytes((flag,)) + len(content).to_bytes(4, "big") + content


def read(*parts, most=MOST):
    """The messages of a request that came in these parts, and the reader."""
    reader = MessageReader(most)
    messages = [message for part in parts for message in reader.read(part)]
    return [(compressed, bytes(content)) for compressed, content in messages], reader


def failure(*parts):
    with pytest.raises(RpcError) as caught:
        read(*parts)
    return caught.value.code, caught.value.message


@pytest.mark.parametrize("view", [bytes, memoryview])
def test_a_message_that_comes_whole_is_read(view):
    messages, reader = read(view(framed(b"abc")))

    assert messages == [(False, b"abc")]
    assert reader.is_between_messages


def test_an_empty_message_is_a_message():
    assert read(framed(b"") * 3)[0] == [(False, b"")] * 3


def test_no_data_is_no_message():
    messages, reader = read(b"", b"")

    assert (messages, reader.is_between_messages) == ([], True)


def test_messages_that_come_together_are_read_in_order():
    assert read(framed(b"a") + framed(b"bc", 1) + framed(b""))[0] == [(False, b"a"), (True, b"bc"), (False, b"")]


@given(
    messages=some.lists(some.tuples(some.booleans(), some.binary(max_size=50)), max_size=6),
    cuts=some.lists(some.integers(0, 400), max_size=12),
    view=some.booleans(),
)
def test_any_cut_of_the_data_gives_the_same_messages(messages, cuts, view):
    whole = b"".join(framed(content, compressed) for compressed, content in messages)
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    parts = [whole[start:end] for start, end in pairwise(edges)]

    results, reader = read(*map(memoryview, parts) if view else parts)

    assert results == messages
    assert reader.is_between_messages
    assert reader.missing == 0


@pytest.mark.parametrize("size", range(1, 12))
def test_a_request_that_ends_within_a_message_is_noticed(size):
    content = framed(b"abcdefg")

    messages, reader = read(content[:size])

    assert (messages, reader.is_between_messages) == (
        ([], False) if size < len(content) else ([(False, b"abcdefg")], True)
    )


def test_what_is_missing_of_a_message_is_known_once_its_prefix_has_come():
    _, reader = read(prefix(600) + bytes(100))

    assert (reader.size, reader.missing) == (600, 500)


@pytest.mark.parametrize("flag", [2, 3, 0x80, 0xFF])
def test_a_flag_other_than_0_and_1_is_an_internal_error(flag):
    code, reason = failure(bytes((flag,)) + bytes(4))

    assert code is Code.INTERNAL
    assert f"starts with {flag}" in reason


def test_a_message_at_the_limit_is_read_and_one_above_is_refused_by_its_prefix():
    assert len(read(framed(bytes(MOST)))[0]) == 1
    code, reason = failure(prefix(MOST + 1))

    assert code is Code.RESOURCE_EXHAUSTED
    assert "larger than max (1001 vs. 1000)" in reason


def test_the_largest_length_of_the_prefix_costs_nothing():
    tracemalloc.start()

    code, _ = failure(b"\x00\xff\xff\xff\xff", bytes(100))

    assert code is Code.RESOURCE_EXHAUSTED
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_prefix_alone_takes_little_memory():
    reader = MessageReader(1 << 30)
    tracemalloc.start()

    reader.read(prefix(1 << 30))

    assert (reader.size, reader.missing) == (1 << 30, 1 << 30)
    assert (reader.held, reader.owed) == (2 << 20, 2 << 20)  # a large page of Linux, once a byte comes
    assert tracemalloc.get_traced_memory()[1] < 1 << 17
    tracemalloc.stop()


def resident():
    """The resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_what_a_message_announces_and_does_not_send_takes_no_memory():
    before = resident()

    readers = [read(prefix(1 << 28) + bytes(70_000), most=1 << 30)[1] for _ in range(8)]

    assert resident() - before < 64 << 20
    assert [(each.held, each.missing) for each in readers] == [(2 << 20, (1 << 28) - 70_000)] * 8


def memory(_front, size):
    return memoryview(bytearray(size))


@pytest.mark.parametrize("part", [1 << 14, 100_000])
@pytest.mark.parametrize("size", [(1 << 16) + 1, 600_001, 1 << 20])
def test_a_long_message_is_put_together_in_its_memory_and_counts_as_it_comes(size, part):
    reader = MessageReader(1 << 20, memory)
    content = random.Random(size).randbytes(size)
    reader.read(prefix(size))
    messages, owed = [], 0
    tracemalloc.start()

    for at in range(0, size, part):
        assert reader.held <= max(4 * at, 1 << 16)
        owed, reader.owed = owed + reader.owed, 0
        messages += reader.read(memoryview(content)[at : at + part])

    assert tracemalloc.get_traced_memory()[1] < size + (1 << 16)
    tracemalloc.stop()
    assert messages == [(False, content)]
    assert type(messages[0][1]) is memoryview
    assert owed + reader.owed == size
    assert reader.held == 0


@pytest.mark.parametrize("size", [60_000, 1 << 16])
def test_a_short_message_in_parts_is_bytes_and_does_not_count(size):
    reader = MessageReader(1 << 20, memory)
    content = prefix(size) + random.Random(size).randbytes(size)

    ((_, message),) = reader.read(content[:1000]) + reader.read(content[1000:])

    assert (message, type(message)) == (content[5:], bytes)
    assert (reader.held, reader.owed) == (0, 0)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_message_without_memory_of_its_own_is_put_together_in_that_of_the_reader(compressed):
    reader = MessageReader(1 << 20, _no_memory if compressed else None)
    content = framed(random.Random(1).randbytes(200_000), compressed)

    ((flag, message),) = reader.read(content[:1000]) + reader.read(content[1000:])

    assert (flag, bytes(message)) == (compressed, content[5:])


def _no_memory(_front, size):
    raise MemoryError(size)


def test_a_message_that_the_memory_has_no_room_for_is_refused():
    reader = MessageReader(1 << 20, _no_memory)

    with pytest.raises(RpcError, match="no memory for a message of 100000 bytes") as caught:
        reader.read(prefix(100_000) + b"x")

    assert caught.value.code is Code.RESOURCE_EXHAUSTED


def test_the_memory_knows_the_first_bytes_of_its_message():
    fronts = []

    def remember(front, size):
        fronts.append((bytes(front), size))
        return memory(front, size)

    reader = MessageReader(1 << 20, remember)
    reader.read(prefix(100_000))
    reader.read(b"abc")
    reader.read(bytes(99_997) + prefix(70_000) + b"de")

    assert fronts == [(b"abc", 100_000), (b"de", 70_000)]


@pytest.mark.parametrize(("size", "compressed", "expected"), [(0, False, "00 00000000"), (258, True, "01 00000102")])
def test_a_prefix_is_a_flag_and_four_bytes_of_length(size, compressed, expected):
    assert prefix(size, compressed) == bytes.fromhex(expected)


def test_the_longest_message_has_a_prefix():
    assert prefix(2**32 - 1) == b"\x00\xff\xff\xff\xff"
