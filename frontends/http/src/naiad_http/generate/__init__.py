"""Codec of the generate extension: flat JSON to requests, responses to flat JSON and events; no socket, no clock."""

from naiad_http.generate.requests import GenerateDecoder
from naiad_http.generate.responses import EventStream, OneResponse

__all__ = ["EventStream", "GenerateDecoder", "OneResponse"]
