"""Takes two milliseconds for each request; its queue has a limit of 100."""

import time

from naiad_custom import FP32, Array, model


@model(outputs="OUTPUT0", max_batch_size=1)
def queued(INPUT0: Array[FP32, 1]) -> Array[FP32, 1]:
    time.sleep(0.002)
    return INPUT0 + 1
