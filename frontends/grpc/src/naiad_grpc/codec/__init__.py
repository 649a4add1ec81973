"""Codec of inference over gRPC: bytes to requests, responses to bytes; no transport, no clock, no server."""

from naiad_grpc.codec.costs import COSTLY_BYTES, model_name_and_version, takes_long
from naiad_grpc.codec.forms import OutputForm, ResponseForm
from naiad_grpc.codec.framing import RequestMessage
from naiad_grpc.codec.memory import request_memory
from naiad_grpc.codec.requests import Decoder, request_id_of
from naiad_grpc.codec.responses import Encoder, TakesLong, encode_error

__all__ = [
    "COSTLY_BYTES",
    "Decoder",
    "Encoder",
    "OutputForm",
    "RequestMessage",
    "ResponseForm",
    "TakesLong",
    "encode_error",
    "model_name_and_version",
    "request_id_of",
    "request_memory",
    "takes_long",
]
