"""The options of the HTTP frontend; names and defaults are those that users of Triton know."""

from naiad.options import Option, boolean, positive


def _port(text: str) -> int:
    """A port number; 0 lets the system choose."""
    value = int(text)
    if not 0 <= value <= 65535:
        raise ValueError(f"'{text}' is no port number; they go from 0 (any free one) to 65535")
    return value


OPTIONS = (
    Option("allow-http", True, "serve HTTP", boolean),
    Option("http-address", "0.0.0.0", "the address to listen on for HTTP", metavar="ADDRESS"),  # noqa: S104 - as Triton
    Option("http-port", 8000, "the port to listen on for HTTP; 0 takes any free one", _port, "PORT"),
    Option("reuse-http-port", False, "share the HTTP port with other servers that allow it too", boolean),
    Option("http-max-input-size", 67108864, "the most bytes of an HTTP request's body", positive, "BYTES"),
    Option(
        "http-header-forward-pattern",
        "",
        "HTTP headers whose names contain a match of this regular expression become request parameters",
        metavar="REGEX",
    ),
    Option(
        "http-restricted-api",
        (),
        "an API that needs a header, as model-repository,statistics:admin-key=secret; may be given several times",
        metavar="APIS:HEADER=VALUE",
        repeatable=True,
    ),
    Option("http-thread-count", 8, "taken for compatibility: one event loop serves all connections", positive, "N"),
)
"""Every option of this frontend."""
