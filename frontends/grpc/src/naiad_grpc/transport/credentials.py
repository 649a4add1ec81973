"""TLS: the server's certificate and key, and whose certificates clients must show."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc

from naiad.errors import InvalidArgumentError


def server_credentials(settings: Mapping[str, Any]) -> grpc.ServerCredentials | None:
    """The credentials that the options ask for, None for plain connections.

    Raises InvalidArgumentError for a file that is missing or no certificate, and for a key of another certificate.
    """
    mutual: bool = settings["grpc-use-ssl-mutual"]
    if not (mutual or settings["grpc-use-ssl"]):
        return None
    certificate, key = (_content(settings, name) for name in ("grpc-server-cert", "grpc-server-key"))
    _check_pair(settings["grpc-server-cert"], settings["grpc-server-key"])
    roots = None
    if mutual or settings["grpc-root-cert"]:
        roots = _content(settings, "grpc-root-cert")
        _check_roots(settings["grpc-root-cert"])
    return grpc.ssl_server_credentials(((key, certificate),), roots, mutual)


def _content(settings: Mapping[str, Any], option: str) -> bytes:
    path: str = settings[option]
    if not path:
        raise InvalidArgumentError(f"gRPC over TLS needs --{option}; give it a PEM file")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"--{option}: '{path}' cannot be read: {error.strerror or error}") from error


def _check_pair(certificate: str, key: str) -> None:
    """Find out now: gRPC itself would only when a client comes."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, OSError) as error:
        raise InvalidArgumentError(
            f"--grpc-server-cert '{certificate}' and --grpc-server-key '{key}' are no certificate and key "
            f"that belong together, in PEM and without a password: {error}"
        ) from error


def _no_password() -> str:
    """Instead of asking on the terminal."""
    return ""


def _check_roots(path: str) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(path)
    except (ssl.SSLError, OSError) as error:
        raise InvalidArgumentError(f"--grpc-root-cert: '{path}' holds no certificates in PEM: {error}") from error
