"""TLS credentials: the server's certificate and key, and the roots of client certificates."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc

from naiad_kit.frontends.tls import read_pair, server_context


class Certificates:
    """The certificate and key of the options, for any number of servers, until `renew` replaces them."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._mutual: bool = settings["grpc-use-ssl-mutual"]
        self.renew(*read_pair("grpc", settings["grpc-server-cert"], settings["grpc-server-key"]))

    def renew(self, certificate: bytes, key: bytes) -> None:
        """Use that certificate and key, and the roots as they are now, from the next connection of each server on."""
        settings = self._settings
        roots = Path(settings["grpc-root-cert"]).read_bytes() if settings["grpc-root-cert"] else None
        self.configuration = grpc.ssl_server_certificate_configuration(((key, certificate),), roots)

    def credentials(self) -> grpc.ServerCredentials:
        """The credentials of one server: grpcio fetches renewed certificates at every connection."""
        return grpc.dynamic_ssl_server_credentials(self.configuration, _Fetcher(self), self._mutual)


class _Fetcher:
    """Callback of grpcio, on a thread of its own, before a handshake: the certificates if they are new."""

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self._current = certificates.configuration

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        latest = self._certificates.configuration
        if latest is self._current:
            return None
        self._current = latest
        return latest


def server_certificates(settings: Mapping[str, Any]) -> Certificates | None:
    """The certificates that the options name, None for plain connections.

    Raises InvalidArgumentError for a missing or invalid file, and for a key of another certificate. gRPC itself would
    notice only when a client connects.
    """
    return None if server_context(settings, "gRPC") is None else Certificates(settings)
