"""What belongs to `triton_python_backend_utils` and is not offered yet: it says so, with what to do meanwhile."""

from typing import Any, NoReturn

from naiad.errors import UnsupportedError


def no_sender() -> NoReturn:
    """A response sender was asked for."""
    raise UnsupportedError(
        "response senders are not offered yet, neither for several responses to one request nor for one sent later; "
        "return a list with one InferenceResponse a request from execute"
    )


def no_calls() -> NoReturn:
    """A model wants to call another one."""
    raise UnsupportedError(
        "calling another model from a model.py (exec, async_exec) is not offered yet; let the client send the second "
        "request"
    )


def no_rescheduling() -> NoReturn:
    """A model wants a request to come back."""
    raise UnsupportedError("rescheduling a request is not offered yet; answer it in this execute")


def load_model(model_name: str, config: str = "", files: Any = None) -> NoReturn:
    """Not offered to a model.py. Raises UnsupportedError."""
    _no_control("load", model_name)


def unload_model(model_name: str, unload_dependents: bool = False) -> NoReturn:
    """Not offered to a model.py. Raises UnsupportedError."""
    _no_control("unload", model_name)


def is_model_ready(model_name: str, model_version: str = "") -> NoReturn:
    """Not offered to a model.py. Raises UnsupportedError."""
    _no_control("ask for", model_name)


def _no_control(verb: str, name: str) -> NoReturn:
    raise UnsupportedError(
        f"a model.py cannot {verb} model '{name}' yet; use the model repository calls of the server's API"
    )


class InferenceResponseSender:
    """Its place is kept; `InferenceRequest.get_response_sender` raises UnsupportedError."""

    def __init__(self) -> None:
        no_sender()


class MetricFamily:
    """Its place is kept; making one raises UnsupportedError."""

    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2

    def __init__(self, name: str, description: str, kind: int) -> None:
        raise UnsupportedError(f"metrics of a model's own ('{name}') are not offered yet; log the value instead")
