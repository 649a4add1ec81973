"""Requests whose texts came before but for the ids in them: they are read as any other, only faster."""

from typing import Any

import numpy as np
import orjson
import pytest

from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_http.codec import Decoder
from naiad_http.codec.request_head import RequestHead

BINARY = {"name": "X", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}}


class Sent:
    """Decodes texts in front of one FP32, one after the other, with one decoder."""

    def __init__(self) -> None:
        self.decoder = Decoder(1 << 20, None, None)  # type: ignore[arg-type]

    def text(self, text: bytes, value: float = 1.0) -> Request:
        content = np.float32([value]).tobytes()
        return self.decoder.decode(RequestHead("m", header_length=len(text)), text, content)[0]

    def sequence(self, sequence_id: Any, value: float = 1.0, **more: Any) -> Request:
        parameters = {"sequence_id": sequence_id, **more}
        return self.text(orjson.dumps({"id": "a", "parameters": parameters, "inputs": [BINARY]}), value)

    @property
    def cached(self) -> int:
        return len(self.decoder._templates)


@pytest.mark.parametrize("ids", [[5, 6, 2**63, 0, 7], ["five", "six", "", "with {}, :"]])
def test_sequences_of_one_text_keep_their_own_ids_and_tensors(ids):
    sent = Sent()

    requests = [sent.sequence(each, number) for number, each in enumerate(ids)]

    assert [request.correlation_id for request in requests] == ids
    assert [request.inputs["X"].array.item() for request in requests] == list(range(len(ids)))
    assert sent.cached == 1


def test_numbers_texts_and_flags_are_not_taken_for_each_other():
    sent = Sent()

    requests = [sent.sequence(5), sent.sequence("5"), sent.sequence(6, sequence_start=True), sent.sequence(6)]

    assert [(each.correlation_id, each.sequence_start) for each in requests] == [
        (5, False),
        ("5", False),
        (6, True),
        (6, False),
    ]
    assert sent.cached == 3


@pytest.mark.parametrize("number", ["18446744073709551615", "10000000000000000000"])
def test_the_longest_numbers_are_ids_too(number):
    sent = Sent()
    sent.sequence(5)

    assert sent.sequence(int(number)).correlation_id == int(number)


@pytest.mark.parametrize("wrong", [b"18446744073709551616", b"-1", b"1.5", b"05", b"5e1", b"true", b"", b'"a', b"[5]"])
def test_what_is_no_id_is_refused_after_one_that_was(wrong):
    sent = Sent()
    text = orjson.dumps({"parameters": {"sequence_id": 5}, "inputs": [BINARY]})
    sent.text(text)

    with pytest.raises(InvalidArgumentError):
        sent.text(text.replace(b"5", wrong, 1))


@pytest.mark.parametrize("further", [{}, {"parameters": {"sequence_id": 5}}])
def test_a_text_without_its_first_brace_is_refused_after_one_with_an_id(further):
    sent = Sent()
    text = orjson.dumps({"id": "1", **further, "inputs": [BINARY]})
    sent.text(text)

    with pytest.raises(InvalidArgumentError):
        sent.text(text.removeprefix(b'{"id":"1",'))


@pytest.mark.parametrize("first", [0, 5])
def test_a_parameter_of_that_name_elsewhere_is_no_sequence(first):
    sent = Sent()

    def nested(number: int) -> bytes:
        parameters = {"binary_data_size": 4, "sequence_id": number}
        return orjson.dumps({"inputs": [BINARY | {"parameters": parameters}]})

    outcomes = [_correlation_id(sent, nested(number)) for number in (first, 7)]

    assert outcomes == [_correlation_id(Sent(), nested(number)) for number in (first, 7)]
    assert 7 not in outcomes


def test_an_id_in_other_words_counts_as_it_does_at_first():
    sent = Sent()

    def escaped(number: int) -> bytes:
        own = b'"own":"\\"sequence_id\\": %d","sequence\\u005fid":%d' % (number, number + 1)
        return b'{"parameters":{' + own + b'},"inputs":[' + orjson.dumps(BINARY) + b"]}"

    assert [sent.text(escaped(number)).correlation_id for number in (5, 8, 5)] == [6, 9, 6]


def test_of_two_sequences_the_later_counts():
    sent = Sent()
    text = b'{"parameters":{"sequence_id":%d,"sequence_id":%d},"inputs":[' + orjson.dumps(BINARY) + b"]}"

    assert [sent.text(text % numbers).correlation_id for numbers in ((5, 5), (6, 7), (8, 5))] == [5, 7, 5]


def _correlation_id(sent: Sent, text: bytes) -> int | str:
    try:
        return sent.text(text).correlation_id
    except InvalidArgumentError as error:
        return str(error)


def test_texts_with_an_empty_id_do_not_lend_it_to_others():
    sent = Sent()
    texts = [orjson.dumps({"id": each, "inputs": [BINARY]}) for each in ("", "a", "", "b")]
    without = orjson.dumps({"inputs": [BINARY]})

    requests = [sent.text(text, number) for number, text in enumerate([*texts, without, *texts, without])]

    assert [request.id for request in requests] == ["", "a", "", "b", "", "", "a", "", "b", ""]
    assert [request.inputs["X"].array.item() for request in requests] == list(range(10))
    assert sent.cached == 1


@pytest.mark.parametrize("text", [b'{"id":"",%s"inputs":[]}', b'{%s"inputs":[]}'])
def test_texts_that_differ_each_time_are_not_kept_without_end(text):
    sent = Sent()
    cache = sent.decoder._templates

    for number in range(2000):
        cache.find(text % (b'"parameters":{"number":%d},' % number), "m")

    assert len(cache) == len(cache._without_id) == 512
