"""Making an instance and running its warmup requests, all on the worker's own thread."""

import logging
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress

from naiad._engine.execution import close_quietly
from naiad._engine.responses import CodecResponseBuilder, ResponseBuilder
from naiad._engine.validation import RequestValidator
from naiad._engine.warmup_inputs import WarmupInputs
from naiad._engine.warmup_progress import WarmupProgress
from naiad.backend import Batch, Instance, Model, Placement, Reply
from naiad.codec import BatchCodec
from naiad.errors import InvalidArgumentError, ModelFailedError, NaiadError
from naiad.foreign_errors import describe_error
from naiad.types import Request
from naiad.warmup import WarmupSample
from naiad_config import ModelConfig

_logger = logging.getLogger("naiad.model")


class Warmup:
    """What every instance of a version answers before it serves."""

    def __init__(
        self,
        config: ModelConfig,
        samples: Sequence[WarmupSample],
        reader: ResponseBuilder | CodecResponseBuilder,
        checker: RequestValidator,
        codec: BatchCodec | None = None,
    ) -> None:
        runs = sum(sample.count for sample in samples)
        self.progress = WarmupProgress(config.name, reader.version, runs)
        self._samples = samples
        self._reader = reader
        self._inputs = WarmupInputs(config, checker, codec)
        self._batching = config.max_batch_size > 0
        self._codec = codec

    def instantiate(self, model: Model, placement: Placement) -> Instance:
        """A warm instance. Raises InvalidArgumentError naming the sample that failed."""
        instance = model.instantiate(placement)
        try:
            self._run_all(instance, placement.name)
        except BaseException:
            close_quietly(instance, placement.name)
            raise
        finally:
            self.progress.ended(placement.name)
        return instance

    def _run_all(self, instance: Instance, name: str) -> None:
        done = 0
        for sample in self._samples:
            for iteration in range(1, sample.count + 1):
                self.progress.step(name, sample.name, iteration, done)
                self._run(instance, name, sample)
                done += 1

    def _run(self, instance: Instance, name: str, sample: WarmupSample) -> None:
        try:
            for requests in [sample.requests] if self._batching else [[request] for request in sample.requests]:
                self._execute(instance, requests)
        except Exception as error:
            reason = str(error) if isinstance(error, NaiadError) else describe_error(error)
            if not isinstance(error, NaiadError):
                _logger.exception("warmup sample '%s' failed on instance '%s'", sample.name, name)
            raise InvalidArgumentError(
                f"failed to run warmup sample '{sample.name}': {reason} (instance '{name}')"
            ) from error

    def _execute(self, instance: Instance, requests: Sequence[Request]) -> None:
        reader = self._reader
        seen, sizes = self._inputs.to_model_shape(requests)
        senders = [_WarmupSender(reader.model) for _ in requests]
        batch = Batch(seen, sizes, senders.__getitem__, reader.layout)
        answer = instance.execute(batch)
        if isinstance(answer, Future):
            answer = answer.result()
        outcomes = reader.read(answer, batch)
        ends = [sender.end for outcome, sender in zip(outcomes, senders, strict=True) if outcome is None]
        del batch, senders  # a sender that the model has dropped says so
        for outcome in [*outcomes, *(end.result() for end in ends)]:
            if isinstance(outcome, NaiadError):
                raise outcome
        if self._codec is not None:
            self._codec.warmed_up(instance, seen)


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
