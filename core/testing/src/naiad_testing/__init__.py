"""Tests of models and plugins: an in-process server, published fakes and conformance suites.

`serve` is in `naiad_testing.serving`, `Client` in `naiad_testing.clients`, the fixture `naiad_serve` in
`naiad_testing.fixtures`, the conformance suite of backends in `naiad_testing.backend_suite`, checks and fakes for them
in `naiad_testing.backends`, for schedulers in `naiad_testing.schedulers`, for frontends the table of behaviours in
`naiad_testing.frontends`, fakes for tracing in `naiad_testing.tracing`, memory checks in `naiad_testing.retention`,
checks of CPU time in `naiad_testing.cost`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from naiad_testing.serving import Client, ModelClient, serve

__all__ = ["Client", "ModelClient", "serve"]


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: pytest imports this package in every run, for its fixture."""
    if name not in __all__:
        raise AttributeError(f"module 'naiad_testing' has no attribute '{name}'")
    return getattr(importlib.import_module("naiad_testing.serving"), name)
