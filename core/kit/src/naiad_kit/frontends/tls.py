"""TLS options: the server's certificate and key, and the roots of client certificates."""

import ssl
from collections.abc import Mapping
from typing import Any

from naiad.errors import UsageError


def server_context(settings: Mapping[str, Any], protocol: str) -> ssl.SSLContext | None:
    """What the options of that `protocol` ("HTTP", "gRPC") ask for, None for plain connections; TLS 1.2 and newer.

    With `--http-root-cert` clients may show a certificate from there, with `--http-use-ssl-mutual` they must. Raises
    UsageError for a file that is missing or no certificate, for a key of another certificate, and for files
    without `--http-use-ssl`, which would otherwise be served in the clear.
    """
    option = protocol.lower()
    mutual: bool = settings[f"{option}-use-ssl-mutual"]
    if not (mutual or settings[f"{option}-use-ssl"]):
        _refuse_files_in_the_clear(settings, protocol)
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate, key = (_readable(settings, protocol, f"{option}-server-{part}") for part in ("cert", "key"))
    load_pair(context, option, certificate, key)
    if mutual or settings[f"{option}-root-cert"]:
        _load_roots(context, option, _readable(settings, protocol, f"{option}-root-cert"))
        context.verify_mode = ssl.CERT_REQUIRED if mutual else ssl.CERT_OPTIONAL
    return context


def _refuse_files_in_the_clear(settings: Mapping[str, Any], protocol: str) -> None:
    option = protocol.lower()
    for name in ("server-cert", "server-key", "root-cert"):
        if settings[f"{option}-{name}"]:
            raise UsageError(
                f"--{option}-{name} is given, but {protocol} is to be served in the clear; add --{option}-use-ssl"
            )


def _readable(settings: Mapping[str, Any], protocol: str, option: str) -> str:
    path: str = settings[option]
    if not path:
        raise UsageError(f"{protocol} over TLS needs --{option}; give it a PEM file")
    try:
        with open(path, "rb"):  # noqa: PTH123 - only to tell which of the files cannot be read
            return path
    except OSError as error:
        raise UsageError(f"--{option}: '{path}' cannot be read: {error.strerror or error}") from error


def check_pair(option: str, certificate: str, key: str) -> None:
    """Raise UsageError unless these files are a certificate and its key; `option` is `http` or `grpc`."""
    load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), option, certificate, key)


def load_pair(context: ssl.SSLContext, option: str, certificate: str, key: str) -> None:
    """Have a context use that certificate and key. Raises UsageError unless these files are such a pair."""
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, OSError) as error:
        raise UsageError(
            f"--{option}-server-cert '{certificate}' and --{option}-server-key '{key}' are not a certificate and key "
            f"that belong together, in PEM and without a password: {error}"
        ) from error


def _no_password() -> str:
    """Instead of asking on the terminal."""
    return ""


def _load_roots(context: ssl.SSLContext, option: str, path: str) -> None:
    try:
        context.load_verify_locations(path)
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"--{option}-root-cert: '{path}' holds no certificates in PEM: {error}") from error
