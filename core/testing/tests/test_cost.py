from functools import partial
from hashlib import sha256

import pytest

from naiad.errors import InvalidArgumentError
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_testing.cost import check_cost

_SIZE = 100_000


def test_a_linear_decoder_passes_and_its_cost_comes_back():
    cost = check_cost(lambda text: text.split(b","), partial(bytes.__mul__, b"a,b,"), _SIZE // 4, bytes_per_byte=40)

    assert cost.peak_bytes > 2 * _SIZE


def test_a_decoder_that_copies_the_rest_for_each_part_is_not_linear():
    def decode(text):
        while text:
            text = text[64:]

    with pytest.raises(AssertionError, match="not linear"):
        check_cost(decode, partial(bytes.__mul__, bytes(64)), _SIZE // 40, bytes_per_byte=40, longest_turn=60)


def test_a_decoder_that_keeps_the_loop_too_long_fails():
    def decode(text):
        return sum(text)

    with pytest.raises(AssertionError, match="in one turn"):
        check_cost(decode, bytes, _SIZE, bytes_per_byte=40, longest_turn=1e-4)


def test_a_decoder_that_makes_much_of_each_byte_fails():
    with pytest.raises(AssertionError, match="for each"):
        check_cost(lambda text: bytes(20 * len(text)), bytes, _SIZE, bytes_per_byte=10)


def test_a_refusal_costs_what_it_costs():
    def decode(text):
        raise InvalidArgumentError(f"{len(text)} bytes")

    cost = check_cost(decode, bytes, _SIZE, bytes_per_byte=1)

    assert cost.peak_bytes < _SIZE


def test_work_on_another_thread_does_not_count_as_a_turn_of_the_loop():
    threads = CodecThreads(threads=1)

    def decode(text):
        for _ in range(200):
            sha256(text)  # gives the interpreter's lock away

    async def off_the_loop(text):
        await threads.run(partial(decode, text))

    cost = check_cost(off_the_loop, bytes, _SIZE, bytes_per_byte=1, longest_turn=60)

    assert cost.longest_turn < cost.cpu_seconds / 3
    threads.close()
