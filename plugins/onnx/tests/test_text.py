"""Strings on their way into and out of ONNX Runtime."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naiad.errors import InvalidArgumentError
from naiad_onnx.text import as_bytes, as_text
from naiad_tensors.tensors import bytes_array

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=12)


@given(TEXTS)
def test_any_text_comes_back_as_it_went(texts):
    sent = bytes_array(np.array([*texts, ""], dtype=object)[:-1].reshape(-1, 1))

    there = as_text(sent, "m", "IN")

    assert there.ravel().tolist() == texts
    assert as_bytes(there).tolist() == sent.tolist()


@given(TEXTS, st.binary(min_size=1), TEXTS)
def test_bytes_that_are_no_text_are_found(before, wrong, after):
    try:
        wrong.decode()
        wrong += b"\xff"
    except UnicodeDecodeError:
        pass
    array = np.empty(len(before) + 1 + len(after), dtype=object)
    array[:] = [*(text.encode() for text in before), wrong, *(text.encode() for text in after)]

    with pytest.raises(InvalidArgumentError, match=f"input 'IN' of model 'm': element {len(before)} is not UTF-8 text"):
        as_text(array, "m", "IN")


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_shapes_stay(shape):
    sent = np.full(shape, b"x", dtype=object)

    assert as_text(sent, "m", "IN").shape == shape
    assert as_bytes(as_text(sent, "m", "IN")).shape == shape
