"""Shapes of an ensemble's own tensors, on their way through a `reshape`."""

import pytest

from naiad_scheduler_ensemble.shapes import chained, reshape


@pytest.mark.parametrize(
    ("dims", "to", "shape", "expected"),
    [
        ((4,), (2, 2), (4,), (2, 2)),
        ((4,), (2, 2), (3, 4), (3, 2, 2)),
        ((-1, 2), (2, -1), (5, 2), (2, 5)),
        ((-1, 2, -1), (-1, 2, 1, -1), (7, 5, 2, 3), (7, 5, 2, 1, 3)),
        ((1,), (), (8, 1), (8,)),
        ((4,), (2, 2), (5,), (5,)),
        ((4,), (2, 2), (1, 3, 4), (1, 3, 4)),
    ],
)
def test_a_shape_of_the_dims_is_reshaped_and_another_stays(
    dims: tuple[int, ...], to: tuple[int, ...], shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    bridge = reshape(dims, to)

    assert bridge is not None
    assert bridge(shape) == expected


def test_the_same_dims_need_no_bridge() -> None:
    assert reshape((4,), (4,)) is None
    assert chained(None, None) is None


def test_bridges_are_crossed_in_order() -> None:
    both = chained(lambda shape: (*shape, 1), lambda shape: (*shape, 2))

    assert both is not None
    assert both(()) == (1, 2)
