"""Where the elements of a tensor lie in memory, format by format."""

import numpy as np
import pytest

from naiad.errors import UnsupportedError
from naiad_tensorrt.execution.layout import memory_shape, memory_size, pack, unpack

from .engines import tensor
from .fake_tensorrt import from_memory

IMAGE, VOLUME = (2, 5, 2, 3), (2, 5, 2, 2, 3)


@pytest.mark.parametrize(
    ("form", "shape", "laid"),
    [
        ("LINEAR", IMAGE, (2, 5, 2, 3)),
        ("DLA_LINEAR", (1, 2, 3, 32), (1, 2, 3, 32)),
        ("CHW2", IMAGE, (2, 3, 2, 3, 2)),
        ("CHW4", IMAGE, (2, 2, 2, 3, 4)),
        ("CHW16", IMAGE, (2, 1, 2, 3, 16)),
        ("CHW32", IMAGE, (2, 1, 2, 3, 32)),
        ("HWC", IMAGE, (2, 2, 3, 5)),
        ("HWC8", IMAGE, (2, 2, 3, 8)),
        ("HWC16", IMAGE, (2, 2, 3, 16)),
        ("CDHW32", VOLUME, (2, 1, 2, 2, 3, 32)),
        ("DHWC", VOLUME, (2, 2, 2, 3, 5)),
        ("DHWC8", VOLUME, (2, 2, 2, 3, 8)),
    ],
)
def test_a_tensor_lies_as_its_format_says(form, shape, laid):
    sent = tensor("x", shape, "HALF", format=form)
    array = np.arange(1, np.prod(shape) + 1, dtype=np.float16).reshape(shape)

    packed = pack(sent, array)

    assert packed.shape == memory_shape(sent, shape) == laid
    assert packed.nbytes == memory_size(sent, shape)
    assert packed.flags.c_contiguous
    assert from_memory(sent, packed, shape).tolist() == array.tolist()
    assert packed.sum(dtype=np.float64) == array.sum(dtype=np.float64), "what is padded is zero"
    assert unpack(sent, packed, shape).tolist() == array.tolist()


@pytest.mark.parametrize(("form", "shape"), [("DLA_HWC4", IMAGE), ("CHW4", (5, 2)), ("CDHW32", (5, 2, 3))])
def test_what_cannot_be_laid_out_is_refused(form, shape):
    with pytest.raises(UnsupportedError, match=f"tensor 'x' of the engine has the format {form} and {len(shape)} dims"):
        memory_shape(tensor("x", shape, format=form), shape)


def test_rows_that_the_accelerator_fills_up_are_refused():
    with pytest.raises(UnsupportedError, match="DLA_LINEAR and rows of 3 elements, which are not a multiple of 64"):
        memory_shape(tensor("x", IMAGE, "HALF", format="DLA_LINEAR"), IMAGE)
