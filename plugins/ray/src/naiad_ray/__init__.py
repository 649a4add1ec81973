"""Naiad on Ray Serve: `serve run naiad_ray:app`, and the command `naiad ray`. This plugin adds nothing to a server."""

from typing import Any


def __getattr__(name: str) -> Any:
    """`app`, the builder of the application, which imports Ray at its first use."""
    if name == "app":
        from naiad_ray.application import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
