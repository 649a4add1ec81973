"""From the options of the server to the channel arguments of gRPC (`grpc/impl/channel_arg_names.h`)."""

from collections.abc import Mapping
from typing import Any

_ARGUMENTS = {
    "grpc-keepalive-time": "grpc.keepalive_time_ms",
    "grpc-keepalive-timeout": "grpc.keepalive_timeout_ms",
    "grpc-keepalive-permit-without-calls": "grpc.keepalive_permit_without_calls",
    "grpc-http2-max-pings-without-data": "grpc.http2.max_pings_without_data",
    "grpc-http2-min-recv-ping-interval-without-data": "grpc.http2.min_recv_ping_interval_without_data_ms",
    "grpc-http2-max-ping-strikes": "grpc.http2.max_ping_strikes",
    "grpc-max-connection-age": "grpc.max_connection_age_ms",
    "grpc-max-connection-age-grace": "grpc.max_connection_age_grace_ms",
}
_LEVELS = {"none": 0, "low": 1, "medium": 2, "high": 3}


def channel_arguments(settings: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The arguments that the options `grpc-…` come to, for servers of one process that share a port.

    A level of compression, unlike an algorithm, leaves it to gRPC to take one that the client can read.
    """
    size: int = settings["grpc-max-message-size"]
    arguments = [(argument, int(settings[option])) for option, argument in _ARGUMENTS.items()]
    arguments += [("grpc.max_receive_message_length", size), ("grpc.max_send_message_length", size)]
    arguments.append(("grpc.so_reuseport", 1))
    # without it a keepalive ping that nobody answers ends a connection only after a minute, whatever its own timeout
    arguments.append(("grpc.http2.ping_timeout_ms", settings["grpc-keepalive-timeout"]))
    level = _LEVELS[settings["grpc-infer-response-compression-level"]]
    return [*arguments, ("grpc.default_compression_level", level)] if level else arguments
