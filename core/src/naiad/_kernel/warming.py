"""Making an instance and running its warmup requests, all on the worker's own thread."""

import logging
from collections.abc import Sequence
from concurrent.futures import Future

from naiad._kernel.answers import AnswerReader
from naiad._kernel.requests import RequestChecker
from naiad._kernel.telling import told
from naiad._kernel.worker import close_quietly
from naiad.backend import Batch, Instance, Model, Placement, Reply
from naiad.config import ModelConfig
from naiad.errors import InvalidArgumentError, ModelFailedError, NaiadError
from naiad.types import Request
from naiad.warmup import WarmupSample

_logger = logging.getLogger("naiad.model")


def instantiate_warm(
    model: Model, config: ModelConfig, reader: AnswerReader, samples: Sequence[WarmupSample], placement: Placement
) -> Instance:
    """An instance that has answered every sample. Raises InvalidArgumentError naming the sample that failed."""
    instance = model.instantiate(placement)
    try:
        for sample in samples:
            _run(instance, config, reader, sample, placement)
    except BaseException:
        close_quietly(instance, placement.name)
        raise
    return instance


def _run(
    instance: Instance, config: ModelConfig, reader: AnswerReader, sample: WarmupSample, placement: Placement
) -> None:
    checker = RequestChecker(config)
    for iteration in range(1, sample.count + 1):
        _logger.debug(
            "model '%s' instance '%s' is running warmup sample '%s' for iteration %d",
            config.name,
            placement.name,
            sample.name,
            iteration,
        )
        try:
            for requests in _batches(sample.requests, config.max_batch_size > 0):
                _execute(instance, checker, reader, requests)
        except Exception as error:
            reason = str(error) if isinstance(error, NaiadError) else told(error)
            if not isinstance(error, NaiadError):
                _logger.exception("warmup sample '%s' failed on instance '%s'", sample.name, placement.name)
            raise InvalidArgumentError(
                f"failed to run warmup sample '{sample.name}': {reason} (instance '{placement.name}')"
            ) from error


def _batches(requests: Sequence[Request], batching: bool) -> Sequence[Sequence[Request]]:
    return [requests] if batching else [[request] for request in requests]


def _execute(instance: Instance, checker: RequestChecker, reader: AnswerReader, requests: Sequence[Request]) -> None:
    sizes = [checker.check(request)[0] for request in requests]
    senders = [_WarmupSender(reader.model) for _ in requests]
    batch = Batch(
        [checker.as_the_model_sees(request) for request in requests], sizes, senders.__getitem__, reader.layout
    )
    answer = instance.execute(batch)
    if isinstance(answer, Future):
        answer = answer.result()
    outcomes = reader.read(answer, batch)
    ends = [sender.end for outcome, sender in zip(outcomes, senders, strict=True) if outcome is None]
    del batch, senders  # a sender that the model has dropped says so
    for outcome in [*outcomes, *(end.result() for end in ends)]:
        if isinstance(outcome, NaiadError):
            raise outcome


class _WarmupSender:
    """Takes the responses of a warmup request; `end` is the first error among them, or None when all was sent."""

    def __init__(self, model: str) -> None:
        self.end: Future[NaiadError | None] = Future()
        self._model = model

    def send(self, reply: Reply | NaiadError | None, final: bool = False) -> bool:
        self.post(reply, final)
        return True

    def post(self, reply: Reply | NaiadError | None, final: bool = False) -> None:
        if not self.end.done() and (final or isinstance(reply, NaiadError)):
            self.end.set_result(reply if isinstance(reply, NaiadError) else None)

    def is_cancelled(self) -> bool:
        return False

    def __del__(self) -> None:
        self.post(ModelFailedError(f"model '{self._model}' dropped a response sender before all was sent"), final=True)
