"""Celsius to Fahrenheit: a whole model, and no configuration file."""

from naiad_custom import FP32, Array, model


@model(max_batch_size=32, outputs="fahrenheit")
def to_fahrenheit(celsius: Array[FP32, 1]) -> Array[FP32, 1]:
    return celsius * 9 / 5 + 32
