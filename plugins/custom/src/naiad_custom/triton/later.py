"""What belongs to `triton_python_backend_utils` and is not offered yet: it says so, with what to do meanwhile."""

from typing import Any, NoReturn

from naiad.errors import UnsupportedError


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
