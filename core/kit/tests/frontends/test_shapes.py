"""Shapes that a caller sends are counted without being trusted."""

import pytest

from naiad.errors import InvalidArgumentError
from naiad_kit.frontends.shapes import count_elements


@pytest.mark.parametrize(("shape", "count"), [((), 1), ((3,), 3), ((2, 3), 6), ((2, 0, 3), 0), ((2**59,), 2**59)])
def test_elements_are_counted(shape, count):
    assert {count_elements(shape, itemsize, "X") for itemsize in (4, 0)} == {count}


@pytest.mark.parametrize(
    ("shape", "itemsize", "message"),
    [
        ((2**62, 2), 1, "causes total element count to exceed maximum size of"),
        ((2**62, 2, 0), 1, "causes total element count to exceed maximum size of"),
        ((2**61,), 8, "byte size overflow for input 'X'"),
        ((2**62, 0), 8, "byte size overflow for input 'X'"),
        ((2**60, 0), 0, "byte size overflow for input 'X'"),
        ((1,) * 65, 1, "input 'X' has 65 dimensions; 64 is the most"),
    ],
)
def test_what_no_memory_can_hold_is_refused(shape, itemsize, message):
    with pytest.raises(InvalidArgumentError, match=message):
        count_elements(shape, itemsize, "X")
