"""`pb_utils.InferenceResponseSender`: sends the responses to one request, from any thread."""

import threading
from collections.abc import Iterable
from typing import Any

from naiad import types
from naiad.backend import Batch, Sender
from naiad.errors import NaiadError
from naiad_custom.triton.errors import TritonModelException
from naiad_custom.triton.replies import reply_of
from naiad_custom.triton.response import TRITONSERVER_RESPONSE_COMPLETE_FINAL, InferenceResponse
from naiad_custom.triton.suspension import wait_for


class Senders:
    """Where the requests of one execution that answers each of them once get their senders from, until it returns."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Batch) -> None:
        self._batch: Batch | None = batch

    def open(self, request: types.Request) -> "InferenceResponseSender":
        """The sender of one of the requests. Raises TritonModelException when the execution is over."""
        if self._batch is None:
            raise TritonModelException(
                "the response sender of this request was not taken before execute returned, which has answered it; "
                "take the sender in execute"
            )
        index = next(index for index, each in enumerate(self._batch.requests) if each is request)
        return InferenceResponseSender(self._batch.sender(index), request, decoupled=False)

    def close(self) -> None:
        """Forget the batch: a request that is kept must not keep the senders of the others."""
        self._batch = None


class InferenceResponseSender:
    """Sends the responses to the request that it was got from, also after `execute` has returned.

    A model that is not decoupled sends exactly one. A sender that is dropped before it was given the final flag fails
    its request.
    """

    __slots__ = ("_closed", "_count", "_decoupled", "_lock", "_request", "_sender")

    def __init__(self, sender: Sender, request: types.Request, decoupled: bool) -> None:
        self._sender = sender
        self._request = request
        self._decoupled = decoupled
        self._count = 0
        self._closed = False
        self._lock = threading.Lock()

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Send a response, the final flag, or both at once. Raises TritonModelException for what cannot be sent.

        Waits while the caller reads more slowly than the model sends; in an `async def execute` the other tasks go on.
        """
        if flags or type(response) is not InferenceResponse:
            _check_arguments(response, flags)
        with self._lock:
            if self._closed or not self._decoupled:
                self._check_state(response)
            reply = None if response is None else reply_of(response, self)
            room = self._sender.post(reply, bool(flags))
            self._count += 1
            self._closed = bool(flags)
        if room is not None:
            wait_for(room)

    def is_cancelled(self) -> bool:
        """Whether the caller has left, so that further responses have no reader."""
        return self._sender.is_cancelled()

    def _fail(self, error: NaiadError) -> None:
        """End the request with an error, unless it has ended."""
        with self._lock:
            if not self._closed:
                self._sender.post(error, final=True)
                self._closed = True

    def _check_state(self, response: InferenceResponse | None) -> None:
        if not self._decoupled and response is not None and self._count:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send more than one response; set "
                "model_transaction_policy { decoupled: true } in its configuration"
            )
        if not self._decoupled and response is None and not self._count:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send complete final before sending a response; "
                "send the response first, or with the flag"
            )
        if self._closed:
            raise TritonModelException(
                "Unable to send response. Response sender has been closed: the final flag was sent before"
            )

    def _payloads(self) -> Iterable[Any]:
        return (each.payload for each in self._request.inputs.values())

    def _holders_of(self, payload: Any) -> int:
        return sum(each.payload is payload for each in self._request.inputs.values())


def _check_arguments(response: Any, flags: int) -> None:
    if flags not in (0, TRITONSERVER_RESPONSE_COMPLETE_FINAL):
        raise TritonModelException(
            f"Unable to send response. Unsupported flag provided: {flags}; it can be 0 or "
            "TRITONSERVER_RESPONSE_COMPLETE_FINAL"
        )
    if response is None and not flags:
        raise TritonModelException(
            "Inference Response object must be provided when the response flags is set to zero; pass one, or "
            "TRITONSERVER_RESPONSE_COMPLETE_FINAL"
        )
    if response is not None and not isinstance(response, InferenceResponse):
        raise TritonModelException(f"send takes an InferenceResponse, not {type(response).__name__}")
