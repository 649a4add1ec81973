"""Codec of inference over HTTP: bytes to requests, responses to bytes; no socket, no clock, no server."""

from naiad_http.codec.forms import OutputForm, ResponseForm
from naiad_http.codec.requests import Decoder
from naiad_http.codec.responses import Encoded, Encoder

__all__ = ["Decoder", "Encoded", "Encoder", "OutputForm", "ResponseForm"]
