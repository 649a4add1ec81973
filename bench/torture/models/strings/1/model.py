"""Counts the strings of its input."""

import numpy as np

from naiad_custom import BYTES, INT64, Array, model


@model(outputs="count")
def strings(text: Array[BYTES, -1]) -> Array[INT64, 1]:
    return np.array([text.size])
