"""Fails each of its requests."""

from naiad_custom import FP32, Array, model


@model(outputs="OUTPUT0")
def raises(INPUT0: Array[FP32, -1]) -> Array[FP32, -1]:
    raise ValueError(f"{INPUT0.size} elements are too many")
