"""Inference routes without transport: decode a head and body to a request, encode an outcome to a response."""

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from naiad.errors import InvalidArgumentError, NaiadError, UnavailableError
from naiad.types import Request
from naiad_http.codec import Decoder, Encoded, Encoder, ResponseForm
from naiad_http.codec.request_head import RequestHead
from naiad_http.codec.responses import MAX_JSON_OUTPUT, LargeOutput
from naiad_http.generate import GenerateDecoder
from naiad_http.load_report import load_report
from naiad_http.statuses import Headers, HttpResponse, Outcome, error_response, unexpected
from naiad_kit.buffers import Buffer
from naiad_kit.explaining import EXPLAIN, encoded_twice
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.metrics import metrics_of
from naiad_kit.shared_memory import shared_memory_of
from naiad_kit.tracing import tracing_of

if TYPE_CHECKING:
    from naiad.server import ServerApi


class Inference:
    """Decoders and encoders of inference, shared by the protocol class and the ASGI applications."""

    def __init__(self, server: "ServerApi", max_input_size: int, max_json_output: int = MAX_JSON_OUTPUT) -> None:
        self.threads = CodecThreads("naiad-http-codec")
        self.max_json_output = max_json_output
        self.tracing = tracing_of(server)
        self._metrics = metrics_of(server)
        self._server = server
        self._decoder = Decoder(max_input_size, server.model_config, shared_memory_of(server))
        self._generate_decoder = GenerateDecoder(max_input_size, server.model_config)
        self._encoder = Encoder(self._batches, server.labels, max_json_output)

    def decode(
        self, request_head: RequestHead, front: Buffer, rest: Buffer, received_ns: int
    ) -> tuple[Request, ResponseForm]:
        """The request in that body, complete since `received_ns`, and the requested form of its response.

        Raises NaiadError.
        """
        try:
            request, form = self._decoder.decode(request_head, front, rest)
        except InvalidArgumentError:
            self._look_up(request_head)
            raise
        request.received_ns = received_ns
        if request_head.timeout is not None:
            request.deadline = monotonic() + request_head.timeout
        return request, form

    def is_large(self, request_head: RequestHead, front: Buffer, rest: Buffer) -> bool:
        """Whether `decode_large` must decode the body. Raises NaiadError."""
        return self._decoder.is_large(request_head, front, rest)

    def decoded_bytes(self, request_head: RequestHead, front: Buffer, rest: Buffer) -> int:
        """An estimate of the memory for decoding a large body, beside its own bytes. Raises InvalidArgumentError."""
        return self._decoder.decoded_bytes(request_head, front, rest)

    async def decode_large(
        self, request_head: RequestHead, front: Buffer, rest: Buffer, received_ns: int
    ) -> tuple[Request, ResponseForm]:
        """As `decode`, on a thread. Looks the model up first, so that an unknown model costs nothing."""
        self._server.model_config(request_head.model_name, request_head.version)
        if request_head.header_length == 0:  # a raw request, which takes nothing but its body
            request, form = await self.threads.run(partial(self._decoder.decode, request_head, front, rest))
        else:
            read = await self.threads.run(partial(self._decoder.read, request_head, front, rest))
            request, form = self._decoder.complete(request_head, read)
        request.received_ns = received_ns
        if request_head.timeout is not None:
            request.deadline = monotonic() + request_head.timeout
        return request, form

    async def decode_large_generate(self, request_head: RequestHead, body: Buffer, received_ns: int) -> Request:
        """As `decode_generate`, on a thread. Looks the model up first."""
        self._server.model_config(request_head.model_name, request_head.version)
        return await self.threads.run(partial(self.decode_generate, request_head, body, received_ns))

    def decode_generate(self, request_head: RequestHead, body: Buffer, received_ns: int) -> Request:
        """The request in the body of `generate` or `generate_stream`, as `decode`. Raises NaiadError."""
        try:
            request = self._generate_decoder.decode(request_head, body)
        except InvalidArgumentError:
            self._look_up(request_head)
            raise
        request.received_ns = received_ns
        if request_head.timeout is not None:
            request.deadline = monotonic() + request_head.timeout
        return request

    def _look_up(self, request_head: RequestHead) -> None:
        """Raise NaiadError for a model that does not serve, which says more to its caller than a fault of the body."""
        self._server.model_config(request_head.model_name, request_head.version)

    def load_headers(self, request_head: RequestHead) -> Headers:
        """The load report headers of a response, if the caller requested them."""
        if self._metrics is None or not request_head.load_format:
            return ()
        return load_report(request_head.load_format, request_head.model_name, self._metrics.collect_made_by_models())

    def encode(
        self, outcome: Outcome, request: Request, form: ResponseForm, on_thread: bool = False
    ) -> Encoded | HttpResponse:
        """The body of a success, or the response to an error.

        Raises LargeOutput, unless it runs `on_thread`, for an output that takes many milliseconds.
        """
        if isinstance(outcome, NaiadError):
            return error_response(outcome, request.id)
        try:
            if outcome.parameters and EXPLAIN in outcome.parameters:
                return encoded_twice(outcome, partial(self._encoder.encode, outcome, form, on_thread))
            return self._encoder.encode(outcome, form, on_thread)
        except LargeOutput:
            raise
        except NaiadError as error:
            return error_response(error, request.id)
        except MemoryError:
            return error_response(
                UnavailableError("there is no memory for the answer now; try again later", 1.0), request.id
            )
        except Exception as error:  # noqa: BLE001 - the caller must get a response whatever a model put into its outputs
            return unexpected(error, request.id)

    def _batches(self, model: str, version: int) -> bool:
        return self._server.model_config(model, version).max_batch_size > 0
