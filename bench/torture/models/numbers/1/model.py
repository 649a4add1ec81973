"""Answers with as many ones as its input says."""

import numpy as np

from naiad_custom import FP32, INT64, Array, model


@model(outputs="ones")
def numbers(count: Array[INT64, 1]) -> Array[FP32, -1]:
    return np.ones(int(count[0]), np.float32)
