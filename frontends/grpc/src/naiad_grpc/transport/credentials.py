"""TLS: the server's certificate and key, and whose certificates clients must show."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc

from naiad_kit.frontends.tls import server_context


def server_credentials(settings: Mapping[str, Any]) -> grpc.ServerCredentials | None:
    """The credentials that the options ask for, None for plain connections.

    Raises InvalidArgumentError for a file that is missing or no certificate, and for a key of another certificate.
    gRPC itself would find out only when a client comes.
    """
    if server_context(settings, "gRPC") is None:
        return None
    key, certificate = (Path(settings[name]).read_bytes() for name in ("grpc-server-key", "grpc-server-cert"))
    roots = Path(settings["grpc-root-cert"]).read_bytes() if settings["grpc-root-cert"] else None
    return grpc.ssl_server_credentials(((key, certificate),), roots, settings["grpc-use-ssl-mutual"])
