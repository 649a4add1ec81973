"""Texts to vectors by hashing three-letter pieces; it also tells how many requests ran together."""

import zlib
from typing import NamedTuple

import numpy as np
from naiad.backend import Batch
from naiad_custom import BYTES, FP32, INT32, Array, model

WIDTH = 256


class Embedded(NamedTuple):
    embedding: Array[FP32, WIDTH]
    ran_together: Array[INT32, 1]


@model(max_batch_size=32)
def embed(text: Array[BYTES, 1], batch: Batch) -> Embedded:
    embedding = np.stack([vector(each) for each in text[:, 0]])
    return Embedded(embedding, np.full((len(text), 1), len(batch.requests), dtype=np.int32))


def vector(text: bytes) -> np.ndarray:
    """FP32 [256] of length 1: how often each piece of three letters occurs, counted by its hash."""
    counts = np.zeros(WIDTH, dtype=np.float32)
    padded = b" " + text.lower() + b" "
    for start in range(len(padded) - 2):
        counts[zlib.crc32(padded[start : start + 3]) % WIDTH] += 1
    return counts / max(float(np.linalg.norm(counts)), 1.0)
