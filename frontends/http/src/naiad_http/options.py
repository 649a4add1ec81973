"""The options of the HTTP frontend; names and defaults are those that users of Triton know."""

from math import isfinite

from naiad.options import Option, boolean, port, positive
from naiad_http.cors import allowed_origin
from naiad_kit.frontends.connection_limits import BODY_SECONDS, HEAD_SECONDS, IDLE_SECONDS


def _seconds(text: str) -> float:
    seconds = float(text)
    if not (isfinite(seconds) and seconds > 0):
        raise ValueError(f"'{text}' must be a number of seconds greater than 0")
    return seconds


def _not_negative(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(f"'{text}' must be 0 or greater")
    return number


OPTIONS = (
    Option("allow-http", True, "serve HTTP", boolean),
    Option(
        "http-address",
        "0.0.0.0",  # noqa: S104 - as Triton
        "the address for HTTP, or unix:PATH for a socket",
        metavar="ADDRESS",
    ),
    Option("http-port", 8000, "the port for HTTP; 0: any free one", port, "PORT"),
    Option("reuse-http-port", False, "share the HTTP port with other servers that allow it too", boolean),
    Option("http-max-input-size", 67108864, "the most bytes of an HTTP request's body", positive, "BYTES"),
    Option(
        "http-max-pipelined-bytes",
        65536,
        "the most bytes of later requests that are read from a connection while one is in flight",
        positive,
        "BYTES",
    ),
    Option(
        "http-max-connections",
        0,
        "the most HTTP connections; 0 takes what the limit of open files allows, and keeps some for all else",
        _not_negative,
        "N",
    ),
    Option("http-idle-seconds", IDLE_SECONDS, "how long an HTTP connection may say nothing", _seconds, "SECS"),
    Option("http-head-seconds", HEAD_SECONDS, "how long the head of an HTTP request may take", _seconds, "SECS"),
    Option(
        "http-body-seconds",
        BODY_SECONDS,
        "how long the body of an HTTP request may take, and a second more for each 4 KiB of it that have come",
        _seconds,
        "SECS",
    ),
    Option(
        "http-max-json-output",
        67108864,
        "the most bytes that an output takes as JSON; a larger one is refused, and must be asked for as binary",
        positive,
        "BYTES",
    ),
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
    Option(
        "http-allow-origin",
        "",
        "the origin whose pages may call the API from a browser (CORS), as https://app.example, or * for every page",
        allowed_origin,
        "ORIGIN",
    ),
    Option("http-use-ssl", False, "serve HTTP over TLS", boolean),
    Option("http-use-ssl-mutual", False, "serve HTTP over TLS to clients that show a certificate", boolean),
    Option("http-server-cert", "", "the server's certificate chain for TLS, PEM", metavar="FILE"),
    Option("http-server-key", "", "the private key of that certificate, PEM", metavar="FILE"),
    Option("http-root-cert", "", "the certificates that those of clients must come from, PEM", metavar="FILE"),
)
"""Every option of this frontend."""
