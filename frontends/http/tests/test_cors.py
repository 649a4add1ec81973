"""CORS: an origin that the option names, and no header without it."""

import pytest

from naiad_http.cors import allowed_origin, cors_headers


@pytest.mark.parametrize("text", ["", "*", "https://app.example", "http://localhost:3000", "https://APP.example"])
def test_an_origin_is_allowed_as_browsers_send_it(text):
    assert allowed_origin(text) == text.lower()


@pytest.mark.parametrize(
    "text",
    [
        "app.example",
        "https://app.example/",
        "https://app.example/x",
        "null",
        "ftp://a",
        "https://a@b",
        "https://a\r\nX: y",
    ],
)
def test_what_is_no_origin_is_refused(text):
    with pytest.raises(ValueError, match="is not an origin"):
        allowed_origin(text)


def test_without_an_origin_there_are_no_headers():
    assert cors_headers("") == []
