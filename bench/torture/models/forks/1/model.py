"""Forks a child that sleeps, and answers with the child's process id."""

import os
import time

import numpy as np

from naiad_custom import FP32, INT64, Array, model


@model(outputs="OUTPUT0")
def forks(INPUT0: Array[FP32, 1]) -> Array[INT64, 1]:
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    return np.array([child])
