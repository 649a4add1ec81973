"""The options of the gRPC frontend; names and defaults are those that users of Triton know."""

from collections.abc import Callable

from naiad.options import Option, boolean

MOST = 2**31 - 1
"""The largest 32-bit integer: the most bytes that a message can have, and milliseconds that mean for ever."""


def _whole(least: int, most: int = MOST) -> Callable[[str], int]:
    """Reads whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise ValueError(f"'{text}' is not between {least} and {most}")
        return value

    return read


_milliseconds = _whole(1)
_count = _whole(0)

LISTENING_OPTIONS = (
    Option("allow-grpc", True, "serve gRPC", boolean),
    Option(
        "grpc-address",
        "0.0.0.0",  # noqa: S104 - as Triton
        "the address for gRPC, or unix:PATH for a socket",
        metavar="ADDRESS",
    ),
    Option("grpc-port", 8001, "the port for gRPC; 0: any free one", _whole(0, 65535), "PORT"),
    Option(
        "grpc-transport",
        "naiad",
        "what speaks HTTP/2: naiad, the server's own, or grpcio",
        choices=("naiad", "grpcio"),
    ),
    Option("reuse-grpc-port", False, "share the gRPC port with other servers that allow it too", boolean),
    Option(
        "grpc-max-message-size",
        64 << 20,
        "the most bytes of a gRPC message that is received, decompressed",
        _whole(1),
        "BYTES",
    ),
    Option("grpc-max-response-size", MOST, "the most bytes of a gRPC message that is sent", _whole(1), "BYTES"),
    Option(
        "grpc-infer-response-compression-level",
        "none",
        "how hard to compress responses, for clients that can read them so",
        choices=("none", "low", "medium", "high"),
    ),
)

ACCESS_OPTIONS = (
    Option(
        "grpc-header-forward-pattern",
        "",
        "gRPC metadata whose keys contain a match of this regular expression become request parameters",
        metavar="REGEX",
    ),
    Option(
        "grpc-restricted-protocol",
        (),
        "RPCs that need metadata, as model-repository,statistics:admin-key=secret; may be given several times",
        metavar="PROTOCOLS:KEY=VALUE",
        repeatable=True,
    ),
    Option("grpc-use-ssl", False, "serve gRPC over TLS", boolean),
    Option("grpc-use-ssl-mutual", False, "serve gRPC over TLS to clients that show a certificate", boolean),
    Option("grpc-server-cert", "", "the server's certificate chain for TLS, PEM", metavar="FILE"),
    Option("grpc-server-key", "", "the private key of that certificate, PEM", metavar="FILE"),
    Option("grpc-root-cert", "", "the certificates that those of clients must come from, PEM", metavar="FILE"),
)

LIMIT_OPTIONS = (
    Option(
        "grpc-max-connections",
        0,
        "gRPC connections at a time; 0 takes a quarter of the files that the process may open",
        _count,
        "N",
    ),
    Option("grpc-max-concurrent-streams", 1024, "calls at a time on one gRPC connection", _whole(1), "N"),
    Option(
        "grpc-connection-window",
        8 << 20,
        "the most bytes of requests that the client of a gRPC connection may send ahead of what is read",
        _whole(65_535),
        "BYTES",
    ),
    Option(
        "grpc-max-calls", 10_000, "gRPC calls in flight; health and metadata are answered beyond it", _whole(1), "N"
    ),
    Option(
        "grpc-handshake-timeout",
        20_000,
        "milliseconds that a new connection may take for TLS and the first frames of HTTP/2",
        _milliseconds,
        "MS",
    ),
    Option(
        "grpc-max-connection-idle",
        3_600_000,
        "milliseconds without a call after which a connection is closed",
        _milliseconds,
        "MS",
    ),
)

CONNECTION_OPTIONS = (
    Option("grpc-keepalive-time", 7_200_000, "milliseconds of silence before a ping is sent", _milliseconds, "MS"),
    Option("grpc-keepalive-timeout", 20_000, "milliseconds that a ping may stay unanswered", _milliseconds, "MS"),
    Option("grpc-keepalive-permit-without-calls", False, "send pings on connections without calls too", boolean),
    Option("grpc-http2-max-pings-without-data", 2, "pings between two messages; 0 sets no limit", _count, "N"),
    Option(
        "grpc-http2-min-recv-ping-interval-without-data",
        300_000,
        "milliseconds that a client must leave between two pings when nothing else is sent",
        _count,
        "MS",
    ),
    Option("grpc-http2-max-ping-strikes", 2, "pings too many that a client may send; 0 sets no limit", _count, "N"),
    Option(
        "grpc-max-connection-age",
        MOST,
        "milliseconds after which a connection takes no new calls; the default sets no limit",
        _milliseconds,
        "MS",
    ),
    Option(
        "grpc-max-connection-age-grace",
        MOST,
        "milliseconds that calls then have to end; the default sets no limit",
        _milliseconds,
        "MS",
    ),
)

OPTIONS = LISTENING_OPTIONS + ACCESS_OPTIONS + LIMIT_OPTIONS + CONNECTION_OPTIONS
"""Every option of this frontend."""
