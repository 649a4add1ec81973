"""Models written for Triton's Python backend: a class TritonPythonModel with execute(requests)."""

import asyncio
import inspect
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from naiad.backend import Batch, ModelContext, Placement, Reply
from naiad.config.json import to_json
from naiad.errors import InvalidArgumentError, ModelFailedError, NaiadError
from naiad.types import bytes_array
from naiad_custom.files import ModelFile
from naiad_custom.ownership import are_fresh, settle
from naiad_custom.triton.errors import TritonError, as_naiad_error
from naiad_custom.triton.readiness import ReadyCheck
from naiad_custom.triton.request import InferenceRequest, received_request
from naiad_custom.triton.response import InferenceResponse


class TritonModel:
    """One loaded version; its class is made and initialized once an instance.

    Raises InvalidArgumentError when the class has no execute, or nothing says what inputs and outputs there are.
    """

    declares_outputs = False

    def __init__(self, context: ModelContext, file: ModelFile, model: type) -> None:
        if not callable(getattr(model, "execute", None)):
            raise InvalidArgumentError(f"{file.path}: TritonPythonModel has no execute(self, requests); write one")
        if not context.config.input and not context.config.output:
            raise InvalidArgumentError(
                f"model '{context.config.name}' has no inputs and outputs: write config.pbtxt, or auto_complete_config "
                f"in {file.path}"
            )
        if "EXECUTION_ENV_PATH" in context.config.parameters:
            context.logger.warning(
                "EXECUTION_ENV_PATH is not used: the model runs in the server's own environment, so install there what "
                "it imports"
            )
        self._context = context
        self._file = file
        self._class = model

    def instantiate(self, placement: Placement) -> "TritonInstance":
        """Make the object there and initialize it. Raises ModelFailedError with file, line and what it raised."""
        config = self._context.config
        try:
            model = self._class()
            if hasattr(model, "initialize"):
                model.initialize(_arguments(self._context, placement))
        except NaiadError:
            raise
        except Exception as error:
            told = f"{self._file.place(error)}: initialize failed: {type(error).__name__}: {error}"
            raise ModelFailedError(told) from error
        return TritonInstance(model, placement.name, [output.name for output in config.output])

    def close(self) -> None:
        """Forget the model's modules."""
        self._file.close()


class TritonInstance:
    """One initialized TritonPythonModel."""

    def __init__(self, model: Any, name: str, outputs: Sequence[str]) -> None:
        self._model = model
        self._name = name
        self._outputs = outputs
        self._execute: Callable[[list[Any]], Any] = model.execute
        self._ready = ReadyCheck(model.is_ready) if hasattr(model, "is_ready") else None
        self._runner: asyncio.Runner | None = None

    def execute(self, batch: Batch) -> list[Reply | NaiadError]:
        """Run one batch. Raises ModelFailedError when the answer is no list with one response a request."""
        outputs = self._outputs
        requests = [received_request(request, outputs) for request in batch.requests]
        responses = self._execute(requests)
        if type(responses) is not list:
            responses = self._list_of(responses)
        if len(responses) != len(requests):
            raise ModelFailedError(
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                f"InferenceRequest(s) size is:{len(requests)}, and InferenceResponse(s) size is:{len(responses)}; "
                "execute must return one response a request, in order"
            )
        return [_reply(each, request) for each, request in zip(responses, requests, strict=True)]

    def ready(self) -> str:
        """Why `is_ready` says no, "" when it says yes or is not there."""
        return "" if self._ready is None else self._ready.reason()

    def close(self) -> None:
        """Finalize the object."""
        if self._ready is not None:
            self._ready.close()
        try:
            if hasattr(self._model, "finalize"):
                self._model.finalize()
        finally:
            if self._runner is not None:
                self._runner.close()

    def _list_of(self, answer: Any) -> list[Any]:
        """The list in an answer that is none by type: awaited, when `execute` is `async def`."""
        if inspect.iscoroutine(answer):
            answer = self._awaited(answer)
        if not isinstance(answer, list):
            raise ModelFailedError(
                f"Expected a list in the execute return, found type '{type(answer).__name__}'; return a list with one "
                "InferenceResponse a request"
            )
        return answer

    def _awaited(self, answer: Coroutine[Any, Any, Any]) -> Any:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(answer)


def _reply(response: Any, request: InferenceRequest) -> Reply | NaiadError:
    if type(response) is not InferenceResponse and not isinstance(response, InferenceResponse):
        raise ModelFailedError(
            "Expected an 'InferenceResponse' object in the execute function return list, found type "
            f"'{type(response).__name__}'"
        )
    if response._error is not None:
        return _told(response._error)
    outputs = {
        each._name: bytes_array(each._payload) if each._datatype == "BYTES" else each._payload
        for each in response._output_tensors
    }
    if not are_fresh(outputs, _HOLDERS):
        settle(outputs, [each._payload for each in (request._inputs or {}).values()], _HOLDERS)
    return Reply(outputs, response._parameters)


_HOLDERS = 1
"""Who holds an output array beside the dict of outputs: its tensor."""


def _told(error: Any) -> NaiadError:
    if isinstance(error, TritonError):
        return as_naiad_error(error)
    return ModelFailedError(str(error))


def _arguments(context: ModelContext, placement: Placement) -> Mapping[str, str]:
    """What `initialize` gets; every value is a string."""
    return {
        "model_config": json.dumps(to_json(context.config)),
        "model_instance_kind": placement.kind,
        "model_instance_device_id": str(placement.device),
        "model_repository": str(context.model_directory),
        "model_version": str(context.version),
        "model_name": context.config.name,
    }
