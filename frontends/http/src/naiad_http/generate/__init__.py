"""The generate extension: flat JSON to requests, responses to flat JSON and events; no socket, no clock, no server."""

from naiad_http.generate.answers import EventStream, OneResponse
from naiad_http.generate.requests import GenerateDecoder

__all__ = ["EventStream", "GenerateDecoder", "OneResponse"]
