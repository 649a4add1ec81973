"""Configurations of the models of tests, and what they are given."""

import numpy as np

from naiad_testing.workbench import tensor_entry

ADD_SUB = "max_batch_size: 8\n" + "".join(
    [
        tensor_entry("input", "a", "FP32", "4"),
        tensor_entry("input", "b", "FP32", "4"),
        tensor_entry("output", "OUTPUT__0", "FP32", "4"),
        tensor_entry("output", "OUTPUT__1", "FP32", "4"),
    ]
)
"""The configuration of AddSub."""


def ones(rows: int, value: float = 1.0, columns: int = 4) -> np.ndarray:
    """FP32[rows, columns], all of one value."""
    return np.full((rows, columns), value, np.float32)
