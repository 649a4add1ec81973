"""The wire form of inference over gRPC: bytes to requests, responses to bytes; no transport, no clock, no server."""

from naiad.transfers import Place
from naiad_grpc.codec.forms import AnswerForm, OutputForm
from naiad_grpc.codec.requests import Decoder, request_id_of
from naiad_grpc.codec.responses import Encoder, encode_error

__all__ = ["AnswerForm", "Decoder", "Encoder", "OutputForm", "Place", "encode_error", "request_id_of"]
