"""BYTES tensors on the wire: what is read, and which words refuse what cannot be."""

import pytest

from naiad.errors import InvalidArgumentError
from naiad_kit.buffers import pack_strings, unpack_strings


@pytest.mark.parametrize("elements", [[], [b""], [b"a", b"", b"\x00\xff" * 9]])
def test_strings_come_back_as_they_were_packed(elements: list[bytes]) -> None:
    content = pack_strings(elements)

    assert unpack_strings(content, len(elements), "S", "m").tolist() == elements


@pytest.mark.parametrize(
    ("content", "count", "message"),
    [
        (
            b"\x01\x00\x00",
            1,
            "incomplete string length indicator for inference input 'S' for model 'm', expecting 4 bytes",
        ),
        (
            b"\x02\x00\x00\x00a",
            1,
            "incomplete string data for inference input 'S' for model 'm', expecting string of length 2",
        ),
        (b"\x01\x00\x00\x00a", 2, "expected 2 string elements for inference input 'S' for model 'm', got 1"),
        (bytes(8), 1, "unexpected number of string elements 2 for inference input 'S' for model 'm', expecting 1"),
    ],
)
def test_elements_that_do_not_fill_their_content_are_refused(content: bytes, count: int, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        unpack_strings(memoryview(content), count, "S", "m")

    assert str(caught.value).startswith(message)
