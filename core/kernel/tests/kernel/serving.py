"""A server in the test's own event loop over a repository that the test writes, and a backend that the test steers."""

from naiad_testing.in_loop import FLOATS, off_the_loop, request, rows, running, write_model
from naiad_testing.steered import Steered, SteeredInstance, SteeredModel

__all__ = [
    "FLOATS",
    "Steered",
    "SteeredInstance",
    "SteeredModel",
    "off_the_loop",
    "request",
    "rows",
    "running",
    "write_model",
]
