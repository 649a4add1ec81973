"""Responses: builds one response or error for each request from what an instance answered, by the configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

from naiad.backend import Answer, Batch, Reply, Reschedule
from naiad.errors import ModelFailedError, NaiadError
from naiad.server import Outcome
from naiad.types import ParameterValue, Request, Response
from naiad_config import ModelConfig
from naiad_tensors.laid_out import LaidOutArrays
from naiad_tensors.outputs import DeclaredOutputs, are_arrays, bring_to_host
from naiad_tensors.parameters import check_parameters
from naiad_tensors.ragged import layout_of
from naiad_tensors.tensors import Tensor

_NO_PARAMETERS: Mapping[str, ParameterValue] = {}


class ResponseBuilder:
    """Builds the responses of one model version; made once a load. See `naiad.codec.ResponseBuilder`.

    `strict` holds names, datatypes and shapes against the configuration.
    """

    def __init__(self, config: ModelConfig, version: int, strict: bool = True) -> None:
        self.model = config.name
        self.version = version
        self.decoupled = config.model_transaction_policy is not None and config.model_transaction_policy.decoupled
        self.layout = layout_of(config)
        self._strict = strict
        self._outputs = DeclaredOutputs(config, strict)

    def read(self, answer: Answer, batch: Batch) -> "Sequence[Outcome | None]":
        """One outcome a request, in order; None for one that is answered through its sender.

        Raises ModelFailedError when the answer as a whole is invalid.
        """
        if self.layout is not None:
            answer = batch.cut(answer)
        if not isinstance(answer, list):  # the usual kinds come first: an abstract class takes longer to check
            if isinstance(answer, (dict, Mapping)):
                return self._read_whole(answer, batch)
            if not isinstance(answer, Sequence):
                raise self._not_an_answer(batch, type(answer).__name__)
        if len(answer) != len(batch.requests):
            raise self._not_an_answer(batch, f"{len(answer)} replies")
        outcomes: list[Outcome | None] = []
        for reply, request, size in zip(answer, batch.requests, batch.sizes, strict=True):
            if type(reply) is not Reply and (reply is None or isinstance(reply, NaiadError)):
                outcomes.append(reply)
                continue
            try:
                outcomes.append(self.response(reply, request, size))
            except NaiadError as error:
                outcomes.append(error.with_traceback(None))  # the traceback would hold this list
        return outcomes

    def read_rows(
        self, answer: Mapping[str, Any], batch: Batch, occupied: Sequence[bool]
    ) -> "Sequence[Outcome | None]":
        """As `read`, for a batch of one row a request: None for the rows that are not occupied.

        All outputs are brought to the host.
        """
        whole = answer if self.layout is None else batch.cut(answer)
        if not isinstance(whole, Mapping) or len(occupied) == 1:
            return self.read(answer, batch)
        return self._cut(self._outputs.read(whole, batch.size), batch, occupied)

    def _read_whole(self, answer: Mapping[str, Any], batch: Batch) -> Sequence[Outcome | None]:
        requests = batch.requests
        tensors = self._outputs.read(answer, batch.size, requests)
        if len(requests) == 1:
            return [self._response_or_error(requests[0], tensors)]
        outcomes = self._cut(tensors, batch)
        if not are_arrays(tensors):
            for request, outcome in zip(requests, outcomes, strict=True):
                if isinstance(outcome, Response):
                    bring_to_host(outcome.outputs, request)
        return outcomes

    def _cut(
        self, tensors: Mapping[str, Tensor], batch: Batch, occupied: Sequence[bool] | None = None
    ) -> list[Outcome | None]:
        """A response with its rows for each request, None for those whose row is not occupied."""
        parts = zip(batch.requests, self._outputs.cut(tensors, batch.sizes, occupied), strict=True)
        return [None if part is None else self._response_or_error(request, part) for request, part in parts]

    def response(self, reply: Reply | Reschedule, request: Request, size: int) -> Response:
        """The response in that reply to a request of batch size `size`. Raises ModelFailedError."""
        if type(reply) is not Reply and isinstance(reply, Reschedule):
            raise ModelFailedError(
                "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured "
                f"to handle such a flag: set sequence_batching {{ iterative_sequence: true }} for model '{self.model}'"
            )
        if type(reply) is not Reply and not isinstance(reply, Reply):
            raise ModelFailedError(
                f"model '{self.model}' answered a request with {type(reply).__name__}; "
                "it must be a naiad.backend.Reply or a NaiadError"
            )
        if reply.parameters:
            check_parameters(reply.parameters, self.model)
        return self._response(request, self._outputs.read(reply.outputs, size, (request,)), reply.parameters)

    def _not_an_answer(self, batch: Batch, answer: str) -> ModelFailedError:
        return ModelFailedError(
            f"model '{self.model}' answered a batch of {len(batch.requests)} requests with {answer}; "
            "it must return one array per output, or one reply for each request"
        )

    def _response_or_error(self, request: Request, tensors: Mapping[str, Tensor]) -> Outcome:
        try:
            return self._response(request, tensors, _NO_PARAMETERS)
        except ModelFailedError as error:
            return error

    def _response(
        self, request: Request, tensors: Mapping[str, Tensor], parameters: Mapping[str, ParameterValue]
    ) -> Response:
        requested = request.requested
        names = tensors.layout.names if type(tensors) is LaidOutArrays else tuple(tensors)
        if requested and names != requested and set(names) != set(requested):
            missing = [name for name in requested if name not in tensors]
            if missing and self._strict and not self.decoupled:
                raise ModelFailedError(
                    f"model '{self.model}' did not produce the requested output '{missing[0]}'; "
                    f"it produced {list(tensors)}"
                )
            tensors = {name: tensor for name, tensor in tensors.items() if name in requested}
        return Response(self.model, self.version, request.id, tensors, parameters)
