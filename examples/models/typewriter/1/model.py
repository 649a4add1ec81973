"""Types a text word by word: one request, as many responses as it has words, and many requests at once."""

import asyncio
from collections.abc import AsyncIterator

import numpy as np
from naiad_custom import BYTES, Array, model

SECONDS_A_WORD = 0.02


@model(outputs="word", concurrency=256)
async def typewriter(text: Array[BYTES, 1]) -> AsyncIterator[Array[BYTES, 1]]:
    for word in text[0].split():
        await asyncio.sleep(SECONDS_A_WORD)
        yield np.array([word], dtype=object)
