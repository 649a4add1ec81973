"""Sends SIGHUP to the process that it runs in."""

import os
import signal

from naiad_custom import FP32, Array, model


@model(outputs="OUTPUT0")
def hangs_up(INPUT0: Array[FP32, 1]) -> Array[FP32, 1]:
    os.kill(os.getpid(), signal.SIGHUP)
    return INPUT0 + 1
