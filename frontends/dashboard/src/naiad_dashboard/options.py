"""The options of the dashboard."""

import re

from naiad.options import Option, boolean, port

DEFAULT_PORT = 8003

_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*")


def prefix(text: str) -> str:
    """A path prefix without its last slash: `/naiad`, or "" for none. Raises ValueError for anything else."""
    stripped = text.rstrip("/")
    if not _PREFIX.fullmatch(stripped):
        raise ValueError(f"'{text}' is no path prefix such as /naiad")
    return stripped


OPTIONS = (
    Option("allow-dashboard", True, "serve the dashboard", boolean),
    Option(
        "dashboard-address",
        "127.0.0.1",
        "the address to listen on for the dashboard; 0.0.0.0 shows it to other machines",
        metavar="ADDRESS",
    ),
    Option("dashboard-port", DEFAULT_PORT, "the port of the dashboard; 0 takes any free one", port, "PORT"),
    Option("dashboard-root-path", "", "the path that a proxy serves the dashboard under, as /naiad", prefix, "PATH"),
    Option(
        "dashboard-token-file",
        "",
        "a file with the token that allows to load and unload models and to change log and trace settings in the "
        "dashboard; without it the dashboard changes nothing",
        metavar="FILE",
    ),
)
"""Every option of this frontend."""
