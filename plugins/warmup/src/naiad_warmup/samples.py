"""Warm-up samples: requests that each new instance of a model version executes, past queue and scheduler."""

import logging
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass

from naiad.backend import Batch, Instance, ModelContext, Reply
from naiad.errors import InvalidArgumentError, ModelFailedError, NaiadError
from naiad.foreign_errors import describe_error
from naiad.types import Request
from naiad.warmup import VersionParts, Warmup
from naiad_config import ModelConfig
from naiad_warmup.inputs import WarmupInputs
from naiad_warmup.progress import WarmupProgress

_logger = logging.getLogger("naiad.model")


@dataclass(frozen=True, slots=True)
class WarmupSample:
    """Requests that go through each instance as one batch, `count` times; all inputs of the model must be there.

    A model without batching gets them one by one.
    """

    name: str
    requests: Sequence[Request]
    count: int = 1


def warmup_of(context: ModelContext, samples: Sequence[WarmupSample]) -> list[Warmup]:
    """A warm-up with these samples, for the result of `naiad_warmup`; none without samples."""
    return [SampleWarmup(context.config, context.version, samples)] if samples else []


class SampleWarmup:
    """Executes samples on each new instance of one model version; see `naiad.warmup.Warmup`."""

    def __init__(self, config: ModelConfig, version: int, samples: Sequence[WarmupSample]) -> None:
        self._progress = WarmupProgress(config.name, version, sum(sample.count for sample in samples))
        self._samples = samples
        self._model = config.name
        self._inputs = WarmupInputs(config)
        self._batching = config.max_batch_size > 0

    @property
    def progress(self) -> str:
        """What the instances run now, "" when nothing does."""
        return str(self._progress)

    def warm_up(self, instance: Instance, name: str, parts: VersionParts) -> None:
        """Run all samples. Raises InvalidArgumentError naming the sample that failed."""
        done = 0
        try:
            for sample in self._samples:
                for iteration in range(1, sample.count + 1):
                    self._progress.step(name, sample.name, iteration, done)
                    self._run(instance, name, sample, parts)
                    done += 1
        finally:
            self._progress.ended(name)

    def _run(self, instance: Instance, name: str, sample: WarmupSample, parts: VersionParts) -> None:
        try:
            for requests in [sample.requests] if self._batching else [[request] for request in sample.requests]:
                self._execute(instance, requests, parts)
        except Exception as error:
            reason = str(error) if isinstance(error, NaiadError) else describe_error(error)
            if not isinstance(error, NaiadError):
                _logger.exception("warmup sample '%s' failed on instance '%s'", sample.name, name)
            raise InvalidArgumentError(
                f"failed to run warmup sample '{sample.name}': {reason} (instance '{name}')"
            ) from error

    def _execute(self, instance: Instance, requests: Sequence[Request], parts: VersionParts) -> None:
        seen, sizes = self._inputs.to_model_shape(requests, parts)
        senders = [_WarmupSender(self._model) for _ in requests]
        batch = Batch(seen, sizes, senders.__getitem__, parts.layout)
        answer = instance.execute(batch)
        if isinstance(answer, Future):
            answer = answer.result()
        outcomes = parts.read(answer, batch)
        ends = [sender.end for outcome, sender in zip(outcomes, senders, strict=True) if outcome is None]
        del batch, senders  # a sender that the model has dropped says so
        for outcome in [*outcomes, *(end.result() for end in ends)]:
            if isinstance(outcome, NaiadError):
                raise outcome
        if parts.codec is not None:
            parts.codec.warmed_up(instance, seen)


class _WarmupSender:
    """Takes the responses of a warmup request; `end` is the first error among them, or None when all was sent.

    Any number of threads may send at once, and the garbage collector may drop it in the middle: the first end counts.
    """

    def __init__(self, model: str) -> None:
        self.end: Future[NaiadError | None] = Future()
        self._model = model

    def send(self, reply: Reply | NaiadError | None, final: bool = False) -> bool:
        self.post(reply, final)
        return True

    def post(self, reply: Reply | NaiadError | None, final: bool = False) -> None:
        error = reply if isinstance(reply, NaiadError) else None
        if final or error is not None:
            with suppress(InvalidStateError):  # another thread has ended it
                self.end.set_result(error)

    def is_cancelled(self) -> bool:
        return False

    def __del__(self) -> None:
        self.post(ModelFailedError(f"model '{self._model}' dropped a response sender before all was sent"), final=True)
