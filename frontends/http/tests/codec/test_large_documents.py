"""Large JSON texts are read in pieces, with the same result as in one."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naiad.errors import InvalidArgumentError, TooLargeError
from naiad_http.codec import large_documents
from naiad_http.codec.documents import parse
from naiad_http.codec.large_documents import parse_document
from naiad_http.codec.tensors import flatten

_LEAVES = st.one_of(st.integers(-9, 10**18), st.floats(allow_nan=False), st.booleans(), st.text(max_size=12))
_NESTED = st.lists(st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=5), max_leaves=40), max_size=12)
_DOCUMENTS = st.fixed_dictionaries(
    {"inputs": st.lists(st.fixed_dictionaries({"name": st.text(max_size=9), "data": _NESTED}), max_size=3)},
    optional={"id": st.sampled_from([":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]", 'a"b', "\\"])},
)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(large_documents, "PIECE_BYTES", 24)


@given(_DOCUMENTS, st.sampled_from([None, 1]))
@settings(max_examples=40)
def test_a_text_read_in_pieces_has_the_values_of_the_whole(document, indent):
    text = json.dumps(document, indent=indent).encode()

    result = parse_document(text)

    assert [_flat(each) for each in result["inputs"]] == [_flat(each) for each in document["inputs"]]
    assert result.get("id") == document.get("id")


@given(_DOCUMENTS, st.data())
@settings(max_examples=40)
def test_a_broken_text_read_in_pieces_is_as_broken_as_the_whole(document, data):
    text = bytearray(json.dumps(document).encode())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at : at + data.draw(st.integers(0, 1))] = data.draw(st.sampled_from([b",", b"]", b"[", b'"', b"}", b":", b""]))

    assert _outcome(parse_document, bytes(text)) == _outcome(parse, bytes(text))


@pytest.mark.parametrize(
    "elements",
    [[*range(20)], [-1.2345678901234567e-300] * 5, [[1, 2, 3], [4, 5], [6]] * 3, ["a,]", '"[', "}:"] * 4],
    ids=["short numbers", "a number for each piece", "lists", "strings"],
)
def test_a_text_that_is_broken_at_any_offset_is_as_broken_as_the_whole(elements):
    text = json.dumps({"inputs": [{"name": "x", "data": elements}]}).encode()

    for offset in range(len(text)):
        for mark in (b"", b",", b"]", b"[", b'"', b"}", b":"):
            for rest in (text[offset:], text[offset + 1 :]):
                broken = text[:offset] + mark + rest
                assert _outcome(parse_document, broken) == _outcome(parse, broken), broken


def test_large_arrays_may_have_what_json_has_not():
    text = b'{"inputs":[{"data":[%b NaN, -Infinity]}]}' % (b"1.5," * 40)

    assert str(parse_document(text)["inputs"][0]["data"][-3:]) == "[1.5, nan, -inf]"


def test_more_values_outside_of_large_arrays_than_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr(large_documents, "MAX_VALUES", 100)
    numbers = b"1," * 500

    parse_document(b'{"a":[%b1]}' % numbers)
    with pytest.raises(TooLargeError, match="more than 100 members, lists and values"):
        parse_document(b'{"a":[%b{}]}' % numbers)


def test_marks_within_strings_are_no_values(monkeypatch):
    monkeypatch.setattr(large_documents, "MAX_VALUES", 100)

    assert parse_document(b'{"a":"%b"}' % (b",[:" * 200)) == {"a": ",[:" * 200}


def _outcome(read, text):
    try:
        document = read(text)
    except InvalidArgumentError:
        return "refused"
    inputs = document.get("inputs") if isinstance(document, dict) else None
    return [_flat(each) for each in inputs] if isinstance(inputs, list) else inputs


def _flat(values):
    if not isinstance(values, dict):
        return values
    return {key: flatten(value)[0] if isinstance(value, list) else value for key, value in values.items()}
