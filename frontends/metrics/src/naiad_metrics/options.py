"""The options of the metrics frontend; names and defaults are those that users of Triton know."""

from collections.abc import Mapping
from typing import Any

from naiad.options import Option, port

_EVERYWHERE = "0.0.0.0"  # noqa: S104 - as Triton


OPTIONS = (
    Option(
        "metrics-address",
        "",
        f"the address for metrics; that of HTTP unless given, or {_EVERYWHERE} without HTTP",
        metavar="ADDRESS",
    ),
    Option("metrics-port", 8002, "the port for metrics; 0: any free one", port, "PORT"),
)
"""Every option of this frontend."""


def address_of(settings: Mapping[str, Any]) -> str:
    """The address to listen at: that of the option, otherwise that of HTTP if it listens at an address."""
    own: str = settings["metrics-address"]
    of_http: str = settings.get("http-address", "") if settings.get("allow-http", False) else ""
    return own or (of_http if not of_http.startswith("unix:") else "") or _EVERYWHERE
