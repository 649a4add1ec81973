"""Takes a fifth of a second for each request."""

import time

from naiad_custom import FP32, Array, model


@model(outputs="OUTPUT0")
def slow(INPUT0: Array[FP32, -1]) -> Array[FP32, 1]:
    time.sleep(0.2)
    return INPUT0[:1].copy()
