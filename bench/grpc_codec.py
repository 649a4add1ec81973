"""What a request costs in the gRPC codec alone, beside what protobuf takes for it; no transport, no queue, no model."""

from collections.abc import Callable, Sequence
from time import process_time

import numpy as np
from naiad import Response, Tensor
from naiad.errors import InvalidArgumentError

from naiad_grpc.codec import Decoder, Encoder, ResponseForm
from naiad_grpc.messages import message_class

_REQUESTS = 50_000
_ROUNDS = 5
_NAMES = ("INPUT0", "INPUT1")
_LARGE = 150_000  # elements of an image of 600 KB


def main() -> None:
    reason = "two FP32[16]"
    small = [_request(16, str(number)) for number in range(1000)]
    known, unknown = Decoder(None), [_request(16, "", str(number)) for number in range(20_000)]
    _report(f"decode a request of {reason}, seen before", known.decode, small)
    _report("... to a model that has no template yet", Decoder(None).decode, unknown, rounds=1)
    _report("... by protobuf, without making arrays", message_class("ModelInferRequest").FromString, small)
    _report("... that is no message", _refused, [message[:-1] for message in small])
    encoder, form = Encoder(None, None), ResponseForm()
    response = _response(16)
    _report(f"encode a response of {reason}", lambda _: b"".join(encoder.encode(response, form)), small)
    _report("... as a part of a stream", lambda _: b"".join(encoder.encode_part(response, form)), small)
    _report("... by protobuf", _encoded_by_protobuf, small)
    large = [_request(_LARGE, "x" * size) for size in range(4)]  # one of four is aligned
    large_response = _response(_LARGE)
    _report("decode a request of two FP32[150000]", known.decode, large, 1000)
    _report("encode a response of that size", lambda _: encoder.encode(large_response, form), large, 1000)
    _report("... into one piece", lambda _: b"".join(encoder.encode(large_response, form)), large, 1000)


def _report(
    reason: str,
    work: Callable[[bytes], object],
    messages: Sequence[bytes],
    count: int = _REQUESTS,
    rounds: int = _ROUNDS,
) -> None:
    cost = min(_seconds(work, messages, count if rounds > 1 else len(messages)) for _ in range(rounds))
    print(f"{reason:46} {cost * 1e6:8.1f} µs of processor time")


def _seconds(work: Callable[[bytes], object], messages: Sequence[bytes], count: int) -> float:
    started = process_time()
    for number in range(count):
        work(messages[number % len(messages)])
    return (process_time() - started) / count


def _request(size: int, request_id: str, model: str = "add_sub") -> bytes:
    """As the client library sends it."""
    message = message_class("ModelInferRequest")(model_name=model, id=request_id)
    for name in _NAMES:
        message.inputs.add(name=name, datatype="FP32", shape=(1, size))
        message.outputs.add(name=name.replace("IN", "OUT"))
        message.raw_input_contents.append(bytes(4 * size))
    return message.SerializeToString()


def _response(size: int) -> Response:
    array = np.random.default_rng(0).random((1, size), np.float32)
    outputs = {name: Tensor(name, "FP32", (1, size), array) for name in ("OUTPUT0", "OUTPUT1")}
    return Response("add_sub", 1, "1234", outputs)


def _refused(message: bytes) -> None:
    try:
        Decoder(None).decode(message)
    except InvalidArgumentError:
        return


def _encoded_by_protobuf(_message: bytes) -> bytes:
    message = message_class("ModelInferResponse")(model_name="add_sub", model_version="1", id="1234")
    content = bytes(64)
    for name in ("OUTPUT0", "OUTPUT1"):
        message.outputs.add(name=name, datatype="FP32", shape=(1, 16))
        message.raw_output_contents.append(content)
    return message.SerializeToString()


if __name__ == "__main__":
    main()
