"""What `triton_python_backend_utils` has in Triton and refuses here, with what to do instead."""

from typing import Any, NoReturn

from naiad.errors import UnsupportedError


def no_calls() -> NoReturn:
    """A model wants to call another one."""
    raise UnsupportedError(
        "a model.py cannot call another model (exec, async_exec) here; let the client send the second request"
    )


def no_rescheduling() -> NoReturn:
    """A model wants a request to come back."""
    raise UnsupportedError("a request cannot be rescheduled here; answer it in this execute")


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
        f"a model.py cannot {verb} model '{name}' here; use the model repository calls of the server's API"
    )
