"""A till: each customer is a sequence, and the server keeps what is on the bill so far from one request to the next."""

from naiad_custom import FP32, Array, model


@model(max_batch_size=16, outputs=("total", "bill_after"))
def add(price: Array[FP32, 1], bill: Array[FP32, 1]) -> tuple[Array[FP32, 1], Array[FP32, 1]]:
    total = bill + price
    return total, total
