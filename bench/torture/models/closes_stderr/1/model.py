"""Closes the standard error of the process that it runs in."""

import sys

from naiad_custom import FP32, Array, model


@model(outputs="OUTPUT0")
def closes_stderr(INPUT0: Array[FP32, 1]) -> Array[FP32, 1]:
    sys.stderr.close()
    return INPUT0 + 1
