"""The options of the dashboard."""

import re

from naiad.options import Option, boolean, port

DEFAULT_PORT = 8003

_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*")


def prefix(text: str) -> str:
    """A path prefix without its last slash: `/naiad`, or "" for none. Raises ValueError for anything else."""
    stripped = text.rstrip("/")
    if not _PREFIX.fullmatch(stripped):
        raise ValueError(f"'{text}' is not a path prefix such as /naiad")
    return stripped


def host_names(text: str) -> tuple[str, ...]:
    """Host names with commas between them, in lower case, or `*` for all. Raises ValueError for a URL or a port."""
    names = tuple(name.strip().lower().rstrip(".") for name in text.split(",") if name.strip())
    invalid = next((name for name in names if name != "*" and not _HOST_NAME.fullmatch(name)), None)
    if invalid is not None:
        raise ValueError(
            f"'{invalid}' is not a host name; write names such as naiad.example.com, without scheme and port"
        )
    return names


OPTIONS = (
    Option("allow-dashboard", True, "serve the dashboard", boolean),
    Option(
        "dashboard-address",
        "127.0.0.1",
        "the address for the dashboard; 0.0.0.0 is every address",
        metavar="ADDRESS",
    ),
    Option("dashboard-port", DEFAULT_PORT, "the port of the dashboard; 0: any free one", port, "PORT"),
    Option(
        "dashboard-allowed-hosts",
        (),
        "the names that browsers may reach the dashboard by, besides localhost, IP addresses and the name of this "
        "machine; * allows every name",
        host_names,
        "NAME,...",
    ),
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
