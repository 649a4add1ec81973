"""A million scores, to ask for their classes."""

import numpy as np

from naiad_custom import FP32, INT64, Array, model

_SCORES = np.arange(1_000_000, dtype=np.float32)


@model(outputs="scores")
def scores(seed: Array[INT64, 1]) -> Array[FP32, 1_000_000]:
    return _SCORES + np.float32(seed[0])
