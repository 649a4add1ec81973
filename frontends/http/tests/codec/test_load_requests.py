"""Load requests: their configuration, and their files in base64, of which large ones are cut out of the JSON."""

import base64
import json

import pytest

from naiad.errors import InvalidArgumentError, TooLargeError
from naiad_http.codec.load_requests import PIECE_BYTES, LoadRequest, read_load_request

LARGE = bytes(range(256)) * 4096


def load(**parameters):
    return json.dumps({"parameters": parameters}).encode()


@pytest.mark.parametrize("size", [0, 1, 65536, 100_001, 1 << 20])
@pytest.mark.parametrize("config", ["{}", 'a \\"name\\" \n ü'])
def test_files_and_the_configuration_are_what_was_sent(size, config):
    encoded = {"file:1/a": base64.b64encode(LARGE[:size]).decode(), "file:labels.txt": "", "config": config}

    assert read_load_request(load(**encoded)) == LoadRequest(config, {"1/a": LARGE[:size], "labels.txt": b""})


def test_slashes_may_be_escaped():
    body = load(**{"file:1/a": base64.b64encode(LARGE).decode()}).replace(b"/", rb"\/")

    assert read_load_request(body).files["1/a"] == LARGE


def test_a_large_configuration_has_escapes_or_none():
    for config in ("x" * 100_000, '"ü\n' * 50_000):
        assert read_load_request(load(config=config)).config == config


def test_an_empty_body_replaces_nothing():
    assert read_load_request(b" \n") == LoadRequest()


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("content", [b"", b"a", b"ab" * 10_000, LARGE])
def test_base64_may_be_wrapped_into_lines_and_need_not_be_padded(content, padded, wrapped):
    text = (base64.encodebytes if wrapped else base64.b64encode)(content).decode()
    text = text if padded else text.replace("=", "")

    assert read_load_request(load(**{"file:1/a": text})).files["1/a"] == content


@pytest.mark.parametrize(
    "text", ["e", "%" * 4, "e===", "A" * 100_001, "A" * PIECE_BYTES + "%AAA", "A" * (PIECE_BYTES - 1) + "=AAAA"]
)
def test_what_is_not_base64_is_refused(text):
    with pytest.raises(InvalidArgumentError, match="load parameter 'file:1/a' is not valid base64: "):
        read_load_request(load(**{"file:1/a": text}))


def test_a_large_configuration_that_is_not_text_is_refused():
    with pytest.raises(InvalidArgumentError, match="'config' is not UTF-8"):
        read_load_request(b'{"parameters":{"config":"%b"}}' % (b"\xff" * 100_000))


def test_a_large_string_without_an_end_is_refused():
    with pytest.raises(InvalidArgumentError, match="a string has no end"):
        read_load_request(b'{"parameters":{"file:1/a":"' + b"e" * 100_000)


def test_a_large_name_is_a_name_in_the_refusal():
    with pytest.raises(InvalidArgumentError, match="unrecognized load parameter 'xxxx"):
        read_load_request(load(**{"x" * 100_000: 1}))


def test_what_the_parser_would_take_long_for_is_refused():
    for body in (load(**{"x" * 5_000_000: 1}), load(config='"' * 2_500_000), load(config=["a"] * 100_001)):
        with pytest.raises(TooLargeError, match=r"is the maximum|more than 100000 strings"):
            read_load_request(body)
