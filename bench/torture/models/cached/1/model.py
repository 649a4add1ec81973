"""Adds one; its answers may be kept by a response cache."""

from naiad_custom import FP32, Array, model


@model(outputs="OUTPUT0")
def cached(INPUT0: Array[FP32, 1]) -> Array[FP32, 1]:
    return INPUT0 + 1
