"""The conformance check of codecs finds what breaks the contract."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad.backend import Answer, Batch, ModelContext
from naiad.codec import Completion, Execution, QueuedRequest
from naiad.default_scheduler import DefaultScheduling
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_tensors.tensors import Tensor
from naiad_testing.codecs import ContractBroken, check_codec

CONTEXT = ModelContext(ModelConfig(name="m"), 1, Path("/nowhere"), Path("/nowhere/1"))


class Plain:
    """A codec that leaves all batches to the kernel; subclasses break the contract."""

    live = open_ = 0

    def open(self, queue: Any) -> "Opened":
        return Opened(self, queue)

    def read(self, answer: Answer, batch: Batch, responses: Any) -> Sequence[Any]:
        return responses.read(answer, batch)

    def build(self, requests: Sequence[QueuedRequest]) -> Sequence[Execution]:
        return ()

    def completed(self, queue: Any, requests: Sequence[QueuedRequest]) -> Completion | None:
        return None

    def arrived(self) -> None:
        pass


class Opened:
    """The codec of a queue, which asks the codec of the version."""

    def __init__(self, codec: Plain, queue: Any) -> None:
        self._codec, self._queue = codec, queue
        self._built: list[QueuedRequest] = []

    @property
    def live(self) -> int:
        return self._codec.live

    @property
    def open(self) -> int:
        return self._codec.open_

    def build(self, dispatch: Any, requests: Sequence[QueuedRequest]) -> Sequence[Execution]:
        self._built = list(requests)
        return self._codec.build(requests)

    def completed(self, batch: Batch, outcomes: Any, error: Any) -> Completion | None:
        return self._codec.completed(self._queue, self._built)

    def ignore(self, *arguments: Any) -> None:
        self._codec.arrived()

    arrived = streamed = withdrawn = lost = ended = end_all = ignore


class Twice(Plain):
    def build(self, requests: Sequence[QueuedRequest]) -> Sequence[Execution]:
        return [Execution(list(requests), Batch([each.request for each in requests], [1]))] * 2


class ReadsNothing(Plain):
    def read(self, answer: Answer, batch: Batch, responses: Any) -> Sequence[Any]:
        return ()


class Forgets(Plain):
    def completed(self, queue: Any, requests: Sequence[QueuedRequest]) -> Completion | None:
        return Completion((), ())


class LacksOutcomes(Plain):
    def completed(self, queue: Any, requests: Sequence[QueuedRequest]) -> Completion | None:
        return Completion(requests, ())


class Keeps(Plain):
    def build(self, requests: Sequence[QueuedRequest]) -> Sequence[Execution]:
        for each in requests:
            each.codec_state = self
        return ()


class StaysLive(Plain):
    live = 1


class StaysOpen(Plain):
    open_ = 1


class Scheduling(DefaultScheduling):
    """The default scheduler with a codec."""

    def __init__(self, codec: Plain | None) -> None:
        self._codec = codec

    def codec(self, context: ModelContext) -> Plain | None:
        return self._codec


def request_of(sequence: int, start: bool, end: bool) -> Request:
    return Request("m", {"x": Tensor.of("x", np.ones((1, 1), np.float32))})


def check(codec: Plain | None) -> None:
    check_codec(Scheduling(codec), CONTEXT, request_of, lambda batch: {"y": batch.input("x")}, histories=2)


def test_a_codec_that_leaves_its_batches_to_the_kernel_keeps_the_contract() -> None:
    check(Plain())


@pytest.mark.parametrize(
    ("codec", "complaint"),
    [
        (None, "the factory 'default' has no codec for model 'm'"),
        (Twice(), "do not have each request once"),
        (ReadsNothing(), "it read 0 outcomes for 1 requests"),
        (Forgets(), "a completion does not have each request of the execution once"),
        (LacksOutcomes(), "a completion lacks outcomes"),
        (Keeps(), "is over and keeps its codec_state"),
        (StaysLive(), "1 sequences are live after the last one has ended"),
        (StaysOpen(), "1 sequences are open after the last one has ended"),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, str) else "",
)
def test_a_codec_that_breaks_the_contract_is_found(codec: Plain | None, complaint: str) -> None:
    with pytest.raises(ContractBroken, match=complaint):
        check(codec)
