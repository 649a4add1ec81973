"""Functions that yield: each `yield` is one response, as fast as the caller reads and for as long as it stays."""

import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, TypedDict

import numpy as np
import pytest

from naiad import Request
from naiad.backend import Batch, ModelContext
from naiad.errors import ModelFailedError
from naiad_custom import BF16, BYTES, INT64, Array, model
from naiad_testing import serve
from naiad_testing.backends import CollectingSender

MOST_ON_THEIR_WAY = 150
"""More responses than a caller who does not read can make a model give."""


@model
def countdown(start: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
    for number in range(int(start[0]), 0, -1):
        yield np.array([number])


def numbers(stream) -> list:
    return [outputs["output"].item() for outputs in stream]


@pytest.mark.parametrize("start", [0, 1, 200])
def test_each_yield_is_one_response(start):
    with serve(countdown) as client:
        result = numbers(client.stream(start=[start]))

    assert result == list(range(start, 0, -1))


def test_the_last_response_is_empty_and_says_that_it_is_over():
    with serve(countdown) as client:
        results = [(response.final, response.is_empty) for response in client.responses(client.request(start=[2]))]

    assert results == [(False, False), (False, False), (True, True)]


class Pair(NamedTuple):
    number: Array[INT64, 1]
    half: Array[BF16, 1]


@dataclass
class Record:
    number: Array[INT64, 1]
    half: Array[BF16, 1]


@model(outputs=("number", "half"))
def tuples(x: Array[INT64, 1]) -> Generator[tuple[Array[INT64, 1], Array[BF16, 1]], None, None]:
    yield x, x / 2


@model
def named_tuples(x: Array[INT64, 1]) -> Iterator[Pair]:
    yield Pair(x, x / 2)


@model
def records(x: Array[INT64, 1]) -> Iterator[Record]:
    yield Record(x, x / 2)


class Mapped(TypedDict):
    number: Array[INT64, 1]
    half: Array[BF16, 1]


@model
def mappings(x: Array[INT64, 1]) -> Iterator[Mapped]:
    yield {"number": x, "half": x / 2}


@pytest.mark.parametrize("target", [tuples, named_tuples, records, mappings])
def test_a_response_has_the_forms_of_a_return_value(target):
    with serve(target) as client:
        (outputs,) = client.stream(x=[3])

    assert {name: array.tolist() for name, array in outputs.items()} == {"number": [3], "half": [1.5]}


def test_a_function_that_returns_an_iterator_streams_too():
    @model
    def delegating(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
        return map(np.array, [[1], [2]])

    with serve(delegating) as client:
        assert numbers(client.stream(x=[0])) == [1, 2]


def test_a_class_whose_execute_yields_keeps_its_state():
    @model
    class Words:
        def load(self, context: ModelContext) -> None:
            self.words = ["one", "two"]

        def execute(self, x: Array[INT64, 1]) -> Iterator[Array[BYTES, 1]]:
            for word in self.words:
                yield np.array([word], dtype=object)

    with serve(Words) as client:
        assert numbers(client.stream(x=[0])) == [b"one", b"two"]


def test_a_slow_reader_holds_the_function_back():
    numbers = count()
    latest = 0

    @model
    def endless(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
        nonlocal latest
        for latest in numbers:
            yield np.array([latest])

    with serve(endless) as client:
        stream = client.stream(x=[0])
        ahead = [latest - outputs["output"].item() for outputs, _ in zip(stream, range(1000), strict=False)]
        stream.close()

    assert max(ahead) < MOST_ON_THEIR_WAY


def test_a_function_stands_still_at_its_yield_until_there_is_room(folder, batch_of):
    folder.write("""
        from collections.abc import Iterator
        from naiad_custom import INT64, Array, model

        @model
        def endless(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
            while True:
                yield x + 1
    """)
    instance, sender = folder.instance(), CollectingSender(room=3)
    one = batch_of({"x": [1]}, batching=False)
    executing = threading.Thread(target=instance.execute, args=(Batch(one.requests, one.sizes, lambda _: sender),))
    executing.start()

    sender.wait_until_held_up()
    before = len(sender.replies)
    sender.take(2)
    sender.wait_until_held_up()
    after = len(sender.replies)
    sender.leave()
    executing.join(10)

    assert (before, after) == (3, 5)
    assert not executing.is_alive()


def test_a_buffer_that_is_filled_anew_does_not_change_what_was_sent():
    @model
    def reusing(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
        buffer = np.zeros(1, np.int64)
        for number in range(100):
            buffer[0] = number
            yield buffer

    with serve(reusing) as client:
        assert numbers(client.stream(x=[0])) == list(range(100))


def test_a_fresh_response_is_not_copied(folder, batch_of):
    folder.write("""
        from collections.abc import Iterator
        import numpy as np
        from naiad_custom import INT64, Array, model

        MADE = []

        def noted(array):
            MADE.append(array.__array_interface__["data"])
            return array

        @model
        def fresh(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
            yield noted(x + 1)
    """)
    instance, sender = folder.instance(), CollectingSender()
    one = batch_of({"x": [1]}, batching=False)

    instance.execute(Batch(one.requests, one.sizes, lambda _: sender))

    (reply,) = sender.wait_until_ended()
    assert [reply.outputs["output"].__array_interface__["data"]] == instance._call.__globals__["MADE"]


def test_a_request_with_rows_is_one_call_with_all_of_them():
    @model(max_batch_size=8)
    def powers(x: Array[INT64, 1], request: Request) -> Iterator[Array[INT64, 1]]:
        for exponent in range(int(request.id)):
            yield x**exponent

    with serve(powers) as client:
        request = client.request(x=[[2], [3]])
        request.id = "3"
        outputs = [
            response.outputs["output"].array.tolist() for response in client.responses(request) if response.outputs
        ]

    assert outputs == [[[1], [1]], [[2], [3]], [[4], [9]]]


def test_a_batch_is_served_one_request_after_the_other(folder, batch_of):
    folder.write(
        """
        from collections.abc import Iterator
        from naiad_custom import INT64, Array, model

        @model(max_batch_size=8)
        def twice(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
            yield x
            if x[0, 0] == 2:
                raise ValueError("no twos")
            yield -x
        """,
        "dynamic_batching { }",
    )
    instance, senders = folder.instance(), [CollectingSender() for _ in range(3)]
    three = batch_of({"x": [[1]]}, {"x": [[2]]}, {"x": [[3]]})

    answer = instance.execute(Batch(three.requests, three.sizes, senders.__getitem__))

    sent = [sender.wait_until_ended() for sender in senders]
    assert answer == [None, None, None]
    assert [sent[index][1].outputs["output"].item() for index in (0, 2)] == [-1, -3]
    assert isinstance(sent[1][1], ModelFailedError)
