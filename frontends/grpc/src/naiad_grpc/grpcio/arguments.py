"""Channel arguments of gRPC (`grpc/impl/channel_arg_names.h`) from the options of the server."""

from collections.abc import Mapping
from typing import Any

from naiad_grpc.admission import default_connections

_ARGUMENTS = {
    "reuse-grpc-port": "grpc.so_reuseport",
    "grpc-keepalive-time": "grpc.keepalive_time_ms",
    "grpc-keepalive-timeout": "grpc.keepalive_timeout_ms",
    "grpc-keepalive-permit-without-calls": "grpc.keepalive_permit_without_calls",
    "grpc-http2-max-pings-without-data": "grpc.http2.max_pings_without_data",
    "grpc-http2-min-recv-ping-interval-without-data": "grpc.http2.min_recv_ping_interval_without_data_ms",
    "grpc-http2-max-ping-strikes": "grpc.http2.max_ping_strikes",
    "grpc-max-connection-age": "grpc.max_connection_age_ms",
    "grpc-max-connection-age-grace": "grpc.max_connection_age_grace_ms",
    "grpc-max-connection-idle": "grpc.max_connection_idle_ms",
    "grpc-max-concurrent-streams": "grpc.max_concurrent_streams",
    "grpc-handshake-timeout": "grpc.server_handshake_timeout_ms",
    "grpc-max-message-size": "grpc.max_receive_message_length",
    "grpc-max-response-size": "grpc.max_send_message_length",
}
_LEVELS = {"none": 0, "low": 1, "medium": 2, "high": 3}


def channel_arguments(settings: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The arguments of a server from the options `grpc-…`.

    A level of compression, unlike an algorithm, lets gRPC choose an algorithm that the client accepts.
    """
    arguments = [(argument, int(settings[option])) for option, argument in _ARGUMENTS.items()]
    connections: int = settings["grpc-max-connections"] or default_connections()
    arguments.append(("grpc.max_allowed_incoming_connections", connections))
    # calls that the event loop has not taken yet, which take 5 kB each; a client may begin and reset them for ever, but
    # those that one connection may have at a time are never refused: a burst of them comes before the loop takes any
    pending = max(settings["grpc-max-calls"], settings["grpc-max-concurrent-streams"])
    arguments += [
        ("grpc.server.max_pending_requests", pending),
        ("grpc.server.max_pending_requests_hard_limit", pending),
    ]
    # without it an unanswered keepalive ping ends a connection only after a minute, whatever its own timeout
    arguments.append(("grpc.http2.ping_timeout_ms", settings["grpc-keepalive-timeout"]))
    level = _LEVELS[settings["grpc-infer-response-compression-level"]]
    return [*arguments, ("grpc.default_compression_level", level)] if level else arguments
