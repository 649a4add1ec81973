"""The routes of inference without their wire: envelope and body to a request, the outcome of a call to an answer."""

from functools import partial
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING

from naiad.buffers import Buffer
from naiad.errors import NaiadError, UnavailableError
from naiad.explaining import EXPLAIN, encoded_twice
from naiad.shared_memory import shared_memory_of
from naiad.tracing import tracing_of
from naiad.types import Request
from naiad_http.codec import AnswerForm, Decoder, Encoded, Encoder
from naiad_http.codec.envelope import Envelope
from naiad_http.codec.responses import MAX_JSON_OUTPUT, LargeOutput
from naiad_http.generate import GenerateDecoder
from naiad_http.load_report import load_report
from naiad_http.statuses import Answer, Headers, Outcome, answer_to, unexpected
from naiad_kit.frontends.codec_threads import CodecThreads

if TYPE_CHECKING:
    from naiad.server import ServerApi


class Inference:
    """Decodes and encodes; the protocol class and the ASGI applications share it, and the server's `tracing`."""

    def __init__(self, server: "ServerApi", max_input_size: int, max_json_output: int = MAX_JSON_OUTPUT) -> None:
        self.threads = CodecThreads("naiad-http-codec")
        self.max_json_output = max_json_output
        self.tracing = tracing_of(server)
        self._server = server
        self._decoder = Decoder(max_input_size, server.model_config, shared_memory_of(server))
        self._generate_decoder = GenerateDecoder(max_input_size, server.model_config)
        self._encoder = Encoder(self._batches, server.labels, max_json_output)

    def decode(self, envelope: Envelope, front: Buffer, rest: Buffer) -> tuple[Request, AnswerForm]:
        """The request in that body and the form of answer that it wants. Raises NaiadError."""
        received_ns = monotonic_ns()
        request, form = self._decoder.decode(envelope, front, rest)
        request.received_ns = received_ns
        _limit_time(request, envelope)
        return request, form

    def is_large(self, envelope: Envelope, front: Buffer, rest: Buffer) -> bool:
        """Whether a body is to be decoded by `decode_large`. Raises NaiadError."""
        return self._decoder.is_large(envelope, front, rest)

    def decoded_bytes(self, envelope: Envelope, front: Buffer) -> int:
        """About how many bytes a large body takes while it is decoded, beside its own. Raises InvalidArgumentError."""
        return self._decoder.decoded_bytes(envelope, front)

    async def decode_large(self, envelope: Envelope, front: Buffer, rest: Buffer) -> tuple[Request, AnswerForm]:
        """As `decode`, with the work on a thread. Looks the model up first: an unknown one costs nothing."""
        received_ns = monotonic_ns()
        self._server.model_config(envelope.model_name, envelope.version)
        read = await self.threads.run(partial(self._decoder.read, envelope, front, rest))
        request, form = self._decoder.complete(envelope, read)
        request.received_ns = received_ns
        _limit_time(request, envelope)
        return request, form

    async def decode_large_generate(self, envelope: Envelope, body: Buffer) -> Request:
        """As `decode_generate`, on a thread. Looks the model up first."""
        self._server.model_config(envelope.model_name, envelope.version)
        return await self.threads.run(partial(self.decode_generate, envelope, body))

    def decode_generate(self, envelope: Envelope, body: Buffer) -> Request:
        """The request in the body of `generate` or `generate_stream`. Raises NaiadError."""
        received_ns = monotonic_ns()
        request = self._generate_decoder.decode(envelope, body)
        request.received_ns = received_ns
        _limit_time(request, envelope)
        return request

    def load_headers(self, envelope: Envelope) -> Headers:
        """The headers of an answer that tell how loaded we are, for a caller who wants that."""
        if not envelope.load_format:
            return ()
        return load_report(envelope.load_format, envelope.model_name, self._server.metrics.collect_made_by_models())

    def encode_large(self, outcome: Outcome, request: Request, form: AnswerForm) -> Encoded | Answer:
        """As `encode`, for any output; to be called on a thread."""
        return self.encode(outcome, request, form, on_thread=True)

    def encode(self, outcome: Outcome, request: Request, form: AnswerForm, on_thread: bool = False) -> Encoded | Answer:
        """The body of a success, or the whole answer to an error. Raises LargeOutput for what needs a thread."""
        if isinstance(outcome, NaiadError):
            return answer_to(outcome, request.id)
        try:
            if outcome.parameters and EXPLAIN in outcome.parameters:
                return encoded_twice(outcome, partial(self._encoder.encode, outcome, form, on_thread))
            return self._encoder.encode(outcome, form, on_thread)
        except LargeOutput:
            raise
        except NaiadError as error:
            return answer_to(error, request.id)
        except MemoryError:
            return answer_to(
                UnavailableError("there is no memory for the answer now; try again later", 1.0), request.id
            )
        except Exception as error:  # noqa: BLE001 - the caller must get an answer whatever a model put into its outputs
            return unexpected(error, request.id)

    def _batches(self, model: str, version: int) -> bool:
        return self._server.model_config(model, version).max_batch_size > 0


def _limit_time(request: Request, envelope: Envelope) -> None:
    if envelope.timeout is not None:
        request.deadline = monotonic() + envelope.timeout
